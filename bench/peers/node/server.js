// The node peer of the bench: Encounter on the demo hospital's tables, by the documented
// means of node-fhir-server-core. It keeps no searches: no Redis, no further pages.
//
//   PORT, PROCESSES, DATABASE_URL, PUBLIC_KEY (a file), ISSUER, AUDIENCE, BASE_URL

const cluster = require('cluster');
const path = require('path');

process.env.TZ = 'Europe/Paris';
process.chdir(__dirname);

if (cluster.isPrimary && Number(process.env.PROCESSES) > 1) {
  for (let number = 0; number < Number(process.env.PROCESSES); number += 1) {
    cluster.fork();
  }
} else {
  const { initialize } = require('@asymmetrik/node-fhir-server-core');
  initialize({
    auth: { strategy: { name: 'bearer', service: path.join(__dirname, 'strategy.js') } },
    logging: { level: 'error' },
    profiles: {
      encounter: { service: path.join(__dirname, 'encounter.js'), versions: ['3_0_1'] },
    },
    server: { port: Number(process.env.PORT) },
  }).listen(Number(process.env.PORT), '127.0.0.1', () => {});
}
