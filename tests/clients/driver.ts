import { readFileSync } from "node:fs";
import { Encounters, EncountersError } from "@encounters/client";
import type { Encounter, Options, Parameters } from "@encounters/client";

interface Wanted {
  options: Options;
  parameters?: Parameters;
  patient?: string | { identifier: string };
}

async function result({ options, parameters = {}, patient }: Wanted) {
  const retries: string[] = [];
  const hospital = new Encounters({ ...options, onRetry: (line) => retries.push(line) });
  const ids: string[] = [];
  try {
    const search = patient === undefined
      ? hospital.search(parameters)
      : hospital.staysOf(await hospital.patient(patient));
    for await (const stay of search) {
      const typed: Encounter = stay;
      const status: "planned" | "in-progress" | "finished" = typed.status;
      if (status) ids.push(typed.id);
    }
    const { total = null, invalidRows } = search;
    const isComplete = search.isComplete(new Set(ids).size);
    return { ids, error: null, search: { total, invalidRows, isComplete } };
  } catch (error) {
    if (!(error instanceof EncountersError)) throw error;
    return { ids, error: error.name, message: `${error.stack} ${error.message}`, retries };
  }
}

const wanted: Wanted = JSON.parse(readFileSync("search.json", "utf-8"));
console.log(JSON.stringify(await result(wanted)));
