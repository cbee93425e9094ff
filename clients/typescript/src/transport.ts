/** Requests with a valid token: waits, repeats and renews, within bounds. */

import { setTimeout as sleep } from "node:timers/promises";
import { Refused, Unavailable } from "./errors.js";
import type { RefusalDetails } from "./errors.js";
import type { OperationOutcome } from "./types.js";

const RETRIED = [408, 429, 503, 504];
/** A token is renewed before it expires, because an expired token costs a request. */
const SHARE_OF_LIFETIME = 0.9;

/** How often to repeat, and how long to wait: `Retry-After`, else twice as long each time. */
export interface Retry {
  /** 5 unless set. */
  tries?: number;
  /** 1 unless set. */
  firstWaitSeconds?: number;
  /** A longer `Retry-After` ends the attempts at once; 60 unless set. */
  longestWaitSeconds?: number;
}

export interface Options {
  /** The base URL, `https://…/fhir/v3`. */
  base: string;
  /** The token address of the identity provider. */
  tokenUrl: string;
  clientId: string;
  clientSecret: string;
  audience?: string;
  scope?: string;
  /** How long to wait for an answer; 60 unless set. */
  timeoutSeconds?: number;
  retry?: Retry;
  /** Called before a request is repeated, with a line that names host and status. */
  onRetry?: (line: string) => void;
}

/** The answer to a request. */
export class Answer {
  readonly host: string;
  readonly status: number;
  private readonly headers: Headers;
  private readonly text: string;

  constructor(host: string, status: number, { headers, text }: { headers: Headers; text: string }) {
    this.host = host;
    this.status = status;
    this.headers = headers;
    this.text = text;
  }

  /** Returns the body, a resource of this type. Throws Refused if it is anything else. */
  resource<T>(resourceType: string): T {
    if (this.status !== 200) throw new Refused(this.details());
    const body = this.body();
    if (body["resourceType"] !== resourceType) {
      throw new Refused({ host: this.host, reason: `the answer is not a ${resourceType}` });
    }
    return body as T;
  }

  /** Returns the details of an error with this answer. */
  details(): RefusalDetails {
    const body = this.body();
    const isOutcome = body["resourceType"] === "OperationOutcome";
    const issues = isOutcome ? (body as unknown as OperationOutcome).issue : [];
    const requestId = this.header("X-Request-Id");
    return { host: this.host, status: this.status, requestId, issues };
  }

  /** Returns the body as an object, an empty one if it is none. */
  body(): Record<string, unknown> {
    try {
      const body: unknown = JSON.parse(this.text);
      if (typeof body === "object" && body !== null) return body as Record<string, unknown>;
    } catch {
      // No JSON: an empty object.
    }
    return {};
  }

  header(name: string): string {
    return this.headers.get(name) ?? "";
  }
}

type Form = URLSearchParams;

/** Sends requests to one service. */
export class Transport {
  readonly base: string;
  readonly host: string;
  private readonly options: Options;
  private token = "";
  private renewAt = 0;

  constructor(options: Options) {
    this.options = options;
    this.base = options.base.replace(/\/+$/, "");
    this.host = new URL(this.base).host;
  }

  /** Returns the answer to a GET. Throws Unavailable, or Refused without a token. */
  get(url: string): Promise<Answer> {
    return this.authorized(url);
  }

  /** Returns the answer to a form. Throws Unavailable, or Refused without a token. */
  post(url: string, form: Form): Promise<Answer> {
    return this.authorized(url, form);
  }

  /** Returns the answer to a link of a page. Throws Refused if it leads elsewhere. */
  async follow(link: string): Promise<Answer> {
    if (!link.startsWith(`${this.base}/`)) {
      throw new Refused({ host: this.host, reason: "the next link leads to another host" });
    }
    return this.get(link);
  }

  /** Sends a request with a token; repeats it once with a new one after 401. */
  private async authorized(url: string, form?: Form): Promise<Answer> {
    const answer = await this.repeated(url, form, await this.validToken());
    if (answer.status !== 401) return answer;
    this.token = "";
    return this.repeated(url, form, await this.validToken());
  }

  private async validToken(): Promise<string> {
    if (this.token === "" || performance.now() >= this.renewAt) {
      const { tokenUrl, clientId, clientSecret, audience, scope } = this.options;
      const form = new URLSearchParams({ grant_type: "client_credentials" });
      form.set("client_id", clientId);
      form.set("client_secret", clientSecret);
      if (audience) form.set("audience", audience);
      if (scope) form.set("scope", scope);
      const answer = await this.repeated(tokenUrl, form, "");
      const { host, status } = answer;
      if (status !== 200) throw new Refused({ host, reason: "no token", status });
      const { access_token: token, expires_in: lifetime = 3600 } = answer.body();
      if (typeof token !== "string") {
        throw new Refused({ host, reason: "the answer has no access token" });
      }
      this.token = token;
      this.renewAt = performance.now() + 1000 * SHARE_OF_LIFETIME * Number(lifetime);
    }
    return this.token;
  }

  /** Sends a request, again while that may help. Throws Unavailable. */
  private async repeated(url: string, form: Form | undefined, token: string): Promise<Answer> {
    const { tries = 5, firstWaitSeconds = 1, longestWaitSeconds = 60 } = this.options.retry ?? {};
    const { host } = new URL(url);
    let wait = firstWaitSeconds;
    for (let attempt = 1; ; attempt++) {
      let pause = wait;
      let reason: string;
      try {
        const answer = await this.send(url, form, token);
        if (!RETRIED.includes(answer.status)) return answer;
        reason = `status ${answer.status}`;
        const named = answer.header("Retry-After");
        if (/^[0-9]+$/.test(named)) {
          pause = Number(named);
          reason += `, Retry-After ${pause}`;
        }
      } catch (error) {
        reason = `no answer (${error instanceof Error ? error.name : "unknown"})`;
      }
      if (attempt >= tries || pause > longestWaitSeconds) {
        throw new Unavailable(`${host}: ${reason}, try ${attempt} of ${tries}`);
      }
      this.options.onRetry?.(`${host}: ${reason}; repeats in ${pause} s`);
      await sleep(1000 * pause);
      wait *= 2;
    }
  }

  private async send(url: string, form: Form | undefined, token: string): Promise<Answer> {
    const headers: Record<string, string> = {
      Accept: token ? "application/fhir+json" : "application/json",
    };
    if (token) headers["Authorization"] = `Bearer ${token}`;
    const response = await fetch(url, {
      method: form ? "POST" : "GET",
      headers,
      body: form ?? null,
      redirect: "manual",
      signal: AbortSignal.timeout(1000 * (this.options.timeoutSeconds ?? 60)),
    });
    const text = await response.text();
    return new Answer(new URL(url).host, response.status, { headers: response.headers, text });
  }
}
