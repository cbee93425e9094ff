/**
 * What can go wrong, named by what the caller can do about it. The messages name host, status
 * and issue code. They quote no value, no answer and no token, as those may hold patient data.
 */

import type { Issue } from "./types.js";

/** The base of all errors of this package. */
export class EncountersError extends Error {
  override get name(): string {
    return this.constructor.name;
  }
}

export interface RefusalDetails {
  host: string;
  reason?: string;
  status?: number;
  requestId?: string;
  issues?: readonly Issue[];
}

/** The request, the credentials or the answer is wrong: repeating does not help. */
export class Refused extends EncountersError {
  readonly host: string;
  /** The status of the answer, undefined if it is not the status that is wrong. */
  readonly status: number | undefined;
  /** Give it to the operator when you report a problem. */
  readonly requestId: string;
  readonly issues: readonly Issue[];

  constructor({ host, reason, status, requestId = "", issues = [] }: RefusalDetails) {
    const parts = reason === undefined ? [] : [reason];
    if (status !== undefined) parts.push(`status ${status}`);
    for (const issue of issues) parts.push([issue.code, ...(issue.location ?? [])].join(" "));
    if (requestId) parts.push(`X-Request-Id ${requestId}`);
    super(`${host}: ${parts.join(", ")}`);
    this.host = host;
    this.status = status;
    this.requestId = requestId;
    this.issues = issues;
  }
}

/** There is no such resource: 404, or 410 if it was removed. */
export class NotFound extends Refused {}

/** The service or the identity provider is away, and repeating did not help: try later. */
export class Unavailable extends EncountersError {}

/** The pages of this search are no longer stored, and the result so far is incomplete. */
export class ResultExpired extends EncountersError {}
