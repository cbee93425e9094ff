/** A search: all its matches, page by page. */

import { ResultExpired } from "./errors.js";
import type { Answer, Transport } from "./transport.js";
import type { Bundle, Issue, OperationOutcome, Resource } from "./types.js";

/** A page: its matches, its messages, and what the service says about the whole search. */
export interface Page<R extends Resource> {
  resources: R[];
  issues: Issue[];
  /** How many matches of this page cannot be shown; they count in `total`. */
  invalidRows: number;
  /** Undefined where the service did not count. */
  total: number | undefined;
  nextLink: string | undefined;
  bundle: Bundle<R>;
}

/**
 * The matches of a search: iterate over them, or over `pages()`.
 *
 * Nothing is sent before. Each iteration searches anew. `total`, `invalidRows` and `issues` are
 * those of the last iteration, as far as it went.
 */
export class Search<R extends Resource> implements AsyncIterable<R> {
  total: number | undefined;
  invalidRows = 0;
  issues: Issue[] = [];
  private readonly transport: Transport;
  private readonly type: R["resourceType"];
  private readonly form: URLSearchParams;

  constructor(transport: Transport, type: R["resourceType"], form: URLSearchParams) {
    this.transport = transport;
    this.type = type;
    this.form = form;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<R> {
    for await (const page of this.pages()) yield* page.resources;
  }

  /**
   * Yields each page; `resume` is the `nextLink` of a page to continue after.
   *
   * Throws ResultExpired if the service no longer stores the pages, Refused, Unavailable.
   */
  async *pages({ resume }: { resume?: string } = {}): AsyncGenerator<Page<R>> {
    this.total = undefined;
    this.invalidRows = 0;
    this.issues = [];
    let page = resume === undefined ? await this.first() : await this.next(resume);
    for (;;) {
      this.total = page.total;
      this.invalidRows += page.invalidRows;
      this.issues.push(...page.issues);
      yield page;
      if (page.nextLink === undefined) return;
      page = await this.next(page.nextLink);
    }
  }

  /** Returns whether so many different ids are all: with the invalid rows, the total. */
  isComplete(ids: number): boolean {
    return this.total === undefined || this.total === ids + this.invalidRows;
  }

  private async first(): Promise<Page<R>> {
    const url = `${this.transport.base}/${this.type}/_search`;
    return pageOf<R>(await this.transport.post(url, this.form));
  }

  private async next(link: string): Promise<Page<R>> {
    const answer = await this.transport.follow(link);
    if (answer.status === 410) {
      throw new ResultExpired(`${answer.host}: the pages are no longer stored`);
    }
    return pageOf<R>(answer);
  }
}

function pageOf<R extends Resource>(answer: Answer): Page<R> {
  const bundle = answer.resource<Bundle<R>>("Bundle");
  const resources: R[] = [];
  const issues: Issue[] = [];
  for (const { resource, search } of bundle.entry ?? []) {
    if (search?.mode === "match") resources.push(resource as R);
    if (search?.mode === "outcome") issues.push(...(resource as OperationOutcome).issue);
  }
  const invalidRows = issues.filter((issue) => issue.code === "exception").length;
  const nextLink = bundle.link?.find((link) => link.relation === "next")?.url;
  return { resources, issues, invalidRows, total: bundle.total, nextLink, bundle };
}
