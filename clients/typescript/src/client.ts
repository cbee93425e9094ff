/** The client of one service. */

import { NotFound, Refused } from "./errors.js";
import { Search } from "./search.js";
import { Transport } from "./transport.js";
import type { Options } from "./transport.js";
import type { Encounter, Organization, Patient, Resource } from "./types.js";

const PAGE_SIZE = 100;

/** Values by name; several values must all hold, alternatives are `a,b`. */
export type Parameters = Record<string, string | number | readonly string[]>;

/**
 * A hospital's stays, patients and organizations.
 *
 * Renews its token and repeats requests that may succeed later. All methods throw Refused if the
 * request, the credentials or the answer is wrong, and Unavailable if repeating did not help.
 */
export class Encounters {
  private readonly transport: Transport;

  constructor(options: Options) {
    this.transport = new Transport(options);
  }

  /** Returns a search for stays: `search({ patient: "Patient/158", date: "ge2024" })`. */
  search(parameters: Parameters = {}): Search<Encounter> {
    return this.searchFor<Encounter>("Encounter", parameters);
  }

  /** Returns a search for patients: `patients({ name: "martin" })`. */
  patients(parameters: Parameters): Search<Patient> {
    return this.searchFor<Patient>("Patient", parameters);
  }

  /** Returns a search for hospitals. */
  organizations(parameters: Parameters = {}): Search<Organization> {
    return this.searchFor<Organization>("Organization", parameters);
  }

  /** Returns a search for the stays of a patient, or of a patient's id. */
  staysOf(patient: Patient | string, parameters: Parameters = {}): Search<Encounter> {
    const id = typeof patient === "string" ? patient : patient.id;
    return this.search({ ...parameters, patient: `Patient/${id}` });
  }

  /** Returns a stay. Throws NotFound if it was removed, or continues under another id. */
  encounter(id: string): Promise<Encounter> {
    return this.read<Encounter>("Encounter", id);
  }

  /**
   * Returns the patient with an id, or with an identifier: `patient({ identifier: "sys|1" })`.
   *
   * Throws NotFound if there is none, and Refused if several have the identifier.
   */
  async patient(wanted: string | { identifier: string }): Promise<Patient> {
    if (typeof wanted === "string") return this.read<Patient>("Patient", wanted);
    const patients: Patient[] = [];
    for await (const patient of this.patients({ identifier: wanted.identifier })) {
      patients.push(patient);
    }
    const { host } = this.transport;
    const [patient] = patients;
    if (patient === undefined) {
      throw new NotFound({ host, reason: "no patient has the identifier" });
    }
    if (patients.length > 1) {
      throw new Refused({ host, reason: `${patients.length} patients have the identifier` });
    }
    return patient;
  }

  /** Returns a hospital. Throws NotFound. */
  organization(id: string): Promise<Organization> {
    return this.read<Organization>("Organization", id);
  }

  private searchFor<R extends Resource>(
    type: R["resourceType"],
    parameters: Parameters,
  ): Search<R> {
    const form = new URLSearchParams();
    for (const [name, value] of Object.entries({ _count: PAGE_SIZE, ...parameters })) {
      const values = typeof value === "object" ? value : [String(value)];
      for (const text of values) form.append(name, text);
    }
    return new Search<R>(this.transport, type, form);
  }

  private async read<R extends Resource>(type: R["resourceType"], id: string): Promise<R> {
    const url = `${this.transport.base}/${type}/${encodeURIComponent(id)}`;
    const answer = await this.transport.get(url);
    if ([404, 410].includes(answer.status)) throw new NotFound(answer.details());
    return answer.resource<R>(type);
  }
}
