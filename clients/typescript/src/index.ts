export { Encounters } from "./client.js";
export type { Parameters } from "./client.js";
export { EncountersError, NotFound, Refused, ResultExpired, Unavailable } from "./errors.js";
export { Search } from "./search.js";
export type { Page } from "./search.js";
export type { Options, Retry } from "./transport.js";
export type * from "./types.js";
