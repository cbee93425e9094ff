// Copy all pages of a search into a file of JSON lines.
//
//   npm ci && npm run build
//   node build/walk.js stays.ndjson Encounter date=ge2024-01-01 _count=100
//
// Needs Node.js 20. ../README.md has the settings, the behaviour and the exit codes.

import { closeSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Bundle, OperationOutcome, Resource } from "fhir/r3";

const COMPLETE = 0, REFUSED = 1, USAGE = 2, INCOMPLETE = 3, UNAVAILABLE = 4;
const TRIES = 5, RESTARTS = 3, LONGEST_WAIT_SECONDS = 60;
const RETRIED = [408, 429, 503, 504];
const REQUIRED = ["BASE", "TOKEN_URL", "CLIENT_ID", "CLIENT_SECRET"];

/** The walk cannot go on: the exit code, and why. */
class WalkError extends Error {
  code = REFUSED;
}

/** The pages of this search are no longer stored: search again. */
class GonePageError extends Error {}

/** Repeating did not help. */
class UnavailableError extends WalkError {
  override code = UNAVAILABLE;
}

type Form = URLSearchParams;
type Headers = Record<string, string>;
interface Answer { status: number; text: string }
interface Token { access_token: string; expires_in?: number }

/** Sends requests with a valid token; waits, repeats and renews as the README says. */
class Service {
  private readonly base = setting("BASE").replace(/\/+$/, "");
  private readonly timeout = 1000 * Number(setting("TIMEOUT_SECONDS") || 60);
  private token = "";
  private renewAt = 0;

  /** Yields each page. Throws GonePageError and WalkError. */
  async *pages(type: string, form: Form): AsyncGenerator<Bundle> {
    let answer = await this.send(`${this.base}/${type}/_search`, form);
    for (;;) {
      const page = bodyOf<Bundle>(answer, "Bundle");
      yield page;
      const next = page.link?.find((link) => link.relation === "next")?.url;
      if (next === undefined) return;
      const isHere = next.startsWith(`${this.base}/`);
      if (!isHere) throw new WalkError("The next link leads to another host.");
      answer = await this.send(next);
      if (answer.status === 410) throw new GonePageError();
    }
  }

  /** Returns the answer to a request; 401 is repeated once, with a new token. */
  private async send(url: string, form?: Form): Promise<Answer> {
    const answer = await this.repeat(url, form, await this.bearer());
    if (answer.status !== 401) return answer;
    this.token = "";
    return this.repeat(url, form, await this.bearer());
  }

  /** Sends a request, again while that may help. Throws UnavailableError. */
  private async repeat(url: string, form?: Form, headers: Headers = {}): Promise<Answer> {
    const method = form ? "POST" : "GET";
    let reason = "";
    for (let attempt = 0; attempt < TRIES; attempt++) {
      let named = "";
      try {
        const sent = { method, headers, body: form ?? null, redirect: "manual" } as const;
        const signal = AbortSignal.timeout(this.timeout);
        const answer = await fetch(url, { ...sent, signal });
        const text = await answer.text();
        if (!RETRIED.includes(answer.status)) return { status: answer.status, text };
        named = answer.headers.get("Retry-After") ?? "";
        reason = `status ${answer.status}, Retry-After '${named}'`;
      } catch (error) {
        reason = `no answer (${error instanceof Error ? error.message : error})`;
      }
      const wait = /^[0-9]+$/.test(named) ? Number(named) : 2 ** attempt;
      if (wait > LONGEST_WAIT_SECONDS) break;
      if (attempt + 1 < TRIES) await sleep(1000 * wait);
    }
    throw new UnavailableError(reason);
  }

  /** Returns the header with a valid token. Throws WalkError. */
  private async bearer(): Promise<Headers> {
    if (this.token === "" || performance.now() >= this.renewAt) {
      const form = new URLSearchParams({ grant_type: "client_credentials" });
      for (const name of ["CLIENT_ID", "CLIENT_SECRET", "AUDIENCE", "SCOPE"]) {
        if (setting(name)) form.set(name.toLowerCase(), setting(name));
      }
      const answer = await this.repeat(setting("TOKEN_URL"), form);
      const body = bodyOf<Token>(answer);
      this.token = body.access_token;
      // Before it ends: an expired token costs a request.
      this.renewAt = performance.now() + 900 * (body.expires_in ?? 3600);
    }
    return { Authorization: `Bearer ${this.token}` };
  }
}

const setting = (name: string): string => process.env[name] ?? "";

/** Returns the body of a 200, a resource of this type. Throws WalkError. */
function bodyOf<T>(answer: Answer, resourceType?: string): T {
  if (answer.status !== 200) {
    throw new WalkError(`status ${answer.status}: ${answer.text.slice(0, 500)}`);
  }
  try {
    const body = JSON.parse(answer.text);
    if (body.resourceType === resourceType) return body;
  } catch {
    // Reported below.
  }
  throw new WalkError(`The answer is not a ${resourceType ?? "token"}.`);
}

/** What the pages of a search had: rows, their ids, invalid rows, and `total`. */
class Tally {
  private rows = 0;
  private readonly ids = new Set<string>();
  private invalid = 0;
  private total: number | undefined;

  /** Counts a page, reports its messages, and returns its resources. */
  count(page: Bundle): Resource[] {
    this.total = page.total;
    const matches: Resource[] = [];
    for (const { resource, search } of page.entry ?? []) {
      if (search?.mode === "match" && resource?.id !== undefined) {
        matches.push(resource);
        this.ids.add(resource.id);
      } else {
        for (const issue of (resource as OperationOutcome).issue) {
          if (issue.code === "exception") this.invalid++;
          console.error(`${issue.severity} ${issue.diagnostics}`);
        }
      }
    }
    this.rows += matches.length;
    return matches;
  }

  /** Reports the numbers and returns the exit code. */
  result(): number {
    const { rows, ids: { size }, invalid, total = "unknown" } = this;
    console.error(`${rows} rows, ${size} ids, ${invalid} invalid, total ${total}`);
    return [size + invalid, "unknown"].includes(total) ? COMPLETE : INCOMPLETE;
  }
}

/** Writes the matches of a search to a file, and returns the exit code. */
async function walk(service: Service, path: string, type: string, form: Form) {
  for (let restart = 0; restart <= RESTARTS; restart++) {
    const file = openSync(path, "w");
    try {
      const tally = new Tally();
      for await (const page of service.pages(type, form)) {
        const lines = tally.count(page).map((each) => JSON.stringify(each) + "\n");
        writeSync(file, lines.join(""));
      }
      return tally.result();
    } catch (error) {
      if (!(error instanceof GonePageError)) throw error;
    } finally {
      closeSync(file);
    }
  }
  throw new UnavailableError(`The pages were gone ${RESTARTS + 1} times.`);
}

/** Runs the program and returns the exit code. */
async function main([out, type, ...parameters]: string[]): Promise<number> {
  const missing = REQUIRED.filter((name) => !setting(name));
  if (out === undefined || type === undefined || missing.length > 0) {
    console.error("usage: walk.js OUT TYPE [NAME=VALUE ...]");
    if (missing.length > 0) console.error(`not set: ${missing.join(" ")}`);
    return USAGE;
  }
  const form = new URLSearchParams();
  for (const each of parameters) {
    const [name = "", ...value] = each.split("=");
    form.append(name, value.join("="));
  }
  try {
    const code = await walk(new Service(), `${out}.part`, type, form);
    renameSync(`${out}.part`, out);
    return code;
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    rmSync(`${out}.part`, { force: true });
    return error instanceof WalkError ? error.code : REFUSED;
  }
}

process.exitCode = await main(process.argv.slice(2));
