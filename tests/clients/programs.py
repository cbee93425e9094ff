"""Programs for `test_generated`, `test_libraries`, `test_frames` and `test_typescript_client`.

The generated clients print all pages of a search as JSON: they follow `next` by `readPage`.
The driver runs a search, or reads the stays of a patient, and prints the result.
"""

FRAMES = """
import json
from pathlib import Path
from encounters_client import Encounters
from pyarrow import parquet

with Encounters.from_environment() as hospital:
    polars = hospital.search().to_polars()
    pandas = hospital.search().to_pandas()
    arrow = hospital.search().to_arrow()
    hospital.search().copy_to("stays.parquet")
file = parquet.read_table("stays.parquet")
assert file.num_rows == 0 or json.loads(file["body"][0].as_py())["resourceType"] == "Encounter"
print(json.dumps({
    "polars": {"rows": polars.height, "start": str(polars.schema["start"])},
    "pandas": {"rows": len(pandas), "start": str(pandas["start"].dtype)},
    "arrow": {"rows": arrow.num_rows, "start": str(arrow.schema.field("start").type)},
    "parquet": {"rows": file.num_rows, "start": str(file.schema.field("start").type)},
}))
"""

TYPESCRIPT_DRIVER = """
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
    return { ids, error: null, total, invalidRows, isComplete, retries };
  } catch (error) {
    if (!(error instanceof EncountersError)) throw error;
    return { ids, error: error.name, message: `${error.stack} ${error.message}`, retries };
  }
}

const wanted: Wanted = JSON.parse(readFileSync("search.json", "utf-8"));
console.log(JSON.stringify(await result(wanted)));
"""

PYTHON_GENERATED = """
import json, os
from urllib.parse import parse_qsl, urlsplit
from client import AuthenticatedClient
from client.api.bundle import read_page
from client.api.encounter import search_encounter_by_form as search
from client.models import Encounter, EncounterStatus, SearchEncounterByFormBody

client = AuthenticatedClient(base_url=os.environ["BASE"], token=os.environ["TOKEN"])
body = SearchEncounterByFormBody.from_dict({"patient": "Patient/158", "_count": 4})
pages = [search.sync(client=client, body=body)]
while links := [link.url for link in pages[-1].link if link.relation == "next"]:
    query = dict(parse_qsl(urlsplit(links[0]).query))
    arguments = {"field_id": query["_id"], "field_index": query["_index"]}
    arguments["field_search_after"] = query["_searchAfter"]
    pages.append(read_page.sync(client=client, **arguments))
for entry in pages[0].entry:
    assert isinstance(entry.resource, Encounter)
    assert isinstance(entry.resource.status, EncounterStatus)
print(json.dumps([page.to_dict() for page in pages]))
"""

TYPESCRIPT_GENERATED = """
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

type Query = paths["/Bundle"]["get"]["parameters"]["query"];

const baseUrl = process.env["BASE"] ?? "";
const headers = { Authorization: `Bearer ${process.env["TOKEN"]}` };
const client = createClient<paths>({ baseUrl, headers });
const query = { patient: "Patient/158", _count: 4 };
let { data } = await client.GET("/Encounter", { params: { query } });
const pages = [];
while (data) {
  pages.push(data);
  const next = data.link.find((link) => link.relation === "next")?.url;
  if (!next) break;
  const parts = Object.fromEntries(new URL(next).searchParams) as unknown as Query;
  ({ data } = await client.GET("/Bundle", { params: { query: parts } }));
}
const total: number | undefined = pages[0]?.total;
if (total === undefined) throw new Error("no total");
for (const { resource } of pages[0]?.entry ?? []) {
  if (resource.resourceType !== "Encounter") throw new Error("no stay");
  const status: "planned" | "in-progress" | "finished" = resource.status;
  if (!status) throw new Error("no status");
}
console.log(JSON.stringify(pages));
"""

JAVA_GENERATED = """
import client.ApiClient;
import client.api.BundleApi;
import client.api.EncounterApi;
import client.model.Bundle;
import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;

public class Main {
    public static void main(String[] arguments) throws Exception {
        var http = new ApiClient();
        http.updateBaseUri(System.getenv("BASE"));
        http.setRequestInterceptor(request ->
            request.header("Authorization", "Bearer " + System.getenv("TOKEN")));
        var encounters = new EncounterApi(http);
        var bundles = new BundleApi(http);
        var pages = new ArrayList<Bundle>();
        // Arguments: all parameters of an operation in its order, null where not set.
        var page = encounters.searchEncounter(SEARCH_ARGUMENTS);
        while (page != null) {
            pages.add(page);
            var next = page.getLink().stream()
                .filter(link -> "next".equals(link.getRelation().getValue())).findFirst();
            if (next.isEmpty()) break;
            var query = new HashMap<String, String>();
            for (var part : URI.create(next.get().getUrl()).getRawQuery().split("&")) {
                var pair = part.split("=", 2);
                query.put(pair[0], URLDecoder.decode(pair[1], StandardCharsets.UTF_8));
            }
            page = bundles.readPage(PAGE_ARGUMENTS);
        }
        System.out.println(http.getObjectMapper().writeValueAsString(pages));
    }
}
"""

FHIRPY = """
import json, os
from fhirpy import SyncFHIRClient
from fhirpy.base.searchset import Raw

token = "Bearer " + os.environ["TOKEN"]
client = SyncFHIRClient(os.environ["BASE"], authorization=token)
stays = client.resources("Encounter").search(Raw(patient="Patient/158")).limit(4)
print(json.dumps([stay["id"] for stay in stays.fetch_all()]))
"""

FHIRCLIENT = """
import json, os
from fhirclient import client
from fhirclient.models.bundle import Bundle
from fhirclient.models.encounter import Encounter

settings = {"app_id": "test", "api_base": os.environ["BASE"]}
server = client.FHIRClient(settings=settings).server
server.session.headers["Authorization"] = "Bearer " + os.environ["TOKEN"]
page = Encounter.where({"patient": "Patient/158", "_count": "4"}).perform(server)
ids = []
while page:
    ids += [entry.resource.id for entry in page.entry]
    links = [link.url for link in page.link if link.relation == "next"]
    page = Bundle.read_from(links[0], server) if links else None
print(json.dumps(ids))
"""

FHIR_PYRATE = """
import json, os
import requests
from fhir_pyrate import Pirate

session = requests.Session()
session.headers["Authorization"] = "Bearer " + os.environ["TOKEN"]
pirate = Pirate(auth=session, base_url=os.environ["BASE"], num_processes=1)
query = {"patient": "158", "_count": 4, "_sort": "-date"}
frame = pirate.steal_bundles_to_dataframe("Encounter", query, fhir_paths=["id"])
print(json.dumps(frame["id"].tolist()))
"""

FHIR_KIT_CLIENT = """
import { Client } from "fhir-kit-client";

const client = new Client({ baseUrl: process.env.BASE });
const { tokenUrl } = await client.smartAuthMetadata();
if (!String(tokenUrl).endsWith("/token")) throw new Error("no token address");
client.bearerToken = process.env.TOKEN;
const searchParams = { patient: "158", _count: 4, _include: "Encounter:patient" };
const entries = [];
let page = await client.search({ resourceType: "Encounter", searchParams });
while (page) {
  entries.push(...page.entry);
  page = await client.nextPage({ bundle: page });
}
const ids = (mode) => entries.filter((e) => e.search.mode === mode).map((e) => e.resource.id);
if (!ids("include").includes("158")) throw new Error("no patient");
console.log(JSON.stringify(ids("match")));
"""

SMART_FHIRCLIENT = """
import library from "fhirclient";

const { BASE: serverUrl, TOKEN: access_token } = process.env;
const client = library().client({ serverUrl, tokenResponse: { access_token } });
const options = { pageLimit: 0, flat: true, graph: true, resolveReferences: "subject" };
const stays = await client.request("Encounter?patient=158&_count=4", options);
if (stays.some((stay) => stay.subject.id !== "158")) throw new Error("no patient");
console.log(JSON.stringify(stays.map((stay) => stay.id)));
"""

FHIR_JS = """
import library from "fhir.js";

const client = library({ baseUrl: process.env.BASE, auth: { bearer: process.env.TOKEN } });
const query = { patient: "158", _count: 4, _sort: "-date" };
let { data: bundle } = await client.search({ type: "Encounter", query });
const ids = [];
for (;;) {
  ids.push(...bundle.entry.map((entry) => entry.resource.id));
  if (!bundle.link.some((link) => link.relation === "next")) break;
  ({ data: bundle } = await client.nextPage({ bundle }));
}
console.log(JSON.stringify(ids));
"""
