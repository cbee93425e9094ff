/** The resources of the service, as its JSON has them. Other elements may be added. */

export interface Coding {
  system?: string;
  code?: string;
  display?: string;
}

export interface Identifier {
  use?: string;
  system?: string;
  value?: string;
}

export interface Reference {
  reference?: string;
}

export interface Meta {
  /** The time of the last change, where the hospital records it. */
  lastUpdated?: string;
  tag?: Coding[];
}

interface ResourceBase {
  /** Stable: what is read by it is this resource or gone. */
  id: string;
  meta?: Meta;
  identifier?: Identifier[];
}

/** A hospital stay. Its times have the offset of the hospital's time zone. */
export interface Encounter extends ResourceBase {
  resourceType: "Encounter";
  status: "planned" | "in-progress" | "finished";
  class?: Coding;
  subject?: Reference;
  period?: { start?: string; end?: string };
  serviceProvider?: Reference & { extension?: { url: string; valueString?: string }[] };
  /** The ward, by name. */
  location?: { location: { display?: string } }[];
}

/** A patient: the administrative profile. */
export interface Patient extends ResourceBase {
  resourceType: "Patient";
  /** False if the patient was merged: `link` has the one that remains. */
  active?: boolean;
  name?: { use?: string; text?: string; family?: string; given?: string[]; prefix?: string[] }[];
  telecom?: { system: string; value: string; use?: string }[];
  gender?: "male" | "female" | "other" | "unknown";
  birthDate?: string;
  deceasedBoolean?: boolean;
  deceasedDateTime?: string;
  address?: { use?: string; line?: string[]; city?: string; postalCode?: string; country?: string }[];
  managingOrganization?: Reference;
  link?: { other: Reference; type: string }[];
}

/** A hospital. */
export interface Organization extends ResourceBase {
  resourceType: "Organization";
  active?: boolean;
  name?: string;
  partOf?: Reference;
}

export type Resource = Encounter | Patient | Organization;

/** An issue: decide by `code`. `diagnostics` is for people, and may quote a value. */
export interface Issue {
  severity: "fatal" | "error" | "warning" | "information";
  code: string;
  diagnostics?: string;
  location?: string[];
}

export interface OperationOutcome {
  resourceType: "OperationOutcome";
  issue: Issue[];
}

/** An entry: a match, or an outcome that is about the page. */
export interface BundleEntry<R extends Resource> {
  fullUrl?: string;
  resource: R | OperationOutcome;
  search?: { mode: "match" | "outcome" | "include" };
}

/** A page. */
export interface Bundle<R extends Resource = Resource> {
  resourceType: "Bundle";
  type: string;
  /** Absent where the service did not count. */
  total?: number;
  link?: { relation: string; url: string }[];
  entry?: BundleEntry<R>[];
}
