"""Programs for `test_generated` and `test_libraries`: each fetches a page and prints it as JSON."""

PYTHON_GENERATED = """
import json, os
from client import AuthenticatedClient
from client.api.default import search_encounter_by_form as search
from client.models import SearchEncounterByFormBody

client = AuthenticatedClient(base_url=os.environ["BASE"], token=os.environ["TOKEN"])
body = SearchEncounterByFormBody.from_dict({"patient": "Patient/158", "_count": 5})
print(json.dumps(search.sync(client=client, body=body).to_dict()))
"""

TYPESCRIPT_GENERATED = """
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const baseUrl = process.env["BASE"] ?? "";
const headers = { Authorization: `Bearer ${process.env["TOKEN"]}` };
const client = createClient<paths>({ baseUrl, headers });
const query = { patient: "Patient/158", _count: 5 };
const { data } = await client.GET("/Encounter", { params: { query } });
const total: number | undefined = data?.total;
if (total === undefined) throw new Error("no total");
console.log(JSON.stringify(data));
"""

JAVA_GENERATED = """
import client.ApiClient;
import client.api.DefaultApi;

public class Main {
    public static void main(String[] arguments) throws Exception {
        var http = new ApiClient();
        http.updateBaseUri(System.getenv("BASE"));
        http.setRequestInterceptor(request ->
            request.header("Authorization", "Bearer " + System.getenv("TOKEN")));
        // ARGUMENTS: all parameters of the description in its order, null where not set.
        var page = new DefaultApi(http).searchEncounter(ARGUMENTS);
        System.out.println(http.getObjectMapper().writeValueAsString(page));
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
