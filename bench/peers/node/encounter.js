// Stays: read and search, one statement a page and one for its total.

const { Pool } = require('pg');
const { resolveSchema } = require('@asymmetrik/node-fhir-server-core');
const { resource } = require('./resource.js');

const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 8 });
const base = process.env.BASE_URL;

const COLUMNS = `sejour_id, etab_id, num_venue, patient_id, etat, type_sejour, date_entree,
  date_sortie, uf_courante, maj_utc AT TIME ZONE 'UTC' AS maj`;
const SERVED = "(etat NOT IN ('A', 'AN', 'X', 'SUP') OR etat IS NULL)";

function condition(asked) {
  const parts = [SERVED];
  const values = [];
  const compared = [];
  const meet = (column, operator, value) => {
    values.push(value);
    compared.push(column + operator);
    parts.push(`${column} ${operator} $${values.length}`);
  };
  if (asked.patient) {
    meet('patient_id', '=', asked.patient.replace('Patient/', ''));
  }
  if (asked['functional-unit']) {
    meet('uf_courante', '=', asked['functional-unit']);
  }
  // The library takes a parameter it knows, like date, once only: these it does not know.
  if (asked.from && asked.before) {
    meet('date_entree', '>=', asked.from);
    meet('date_entree', '<', asked.before);
  }
  return { where: parts.join(' AND '), values, shape: compared.join() };
}

async function page(asked, size) {
  const { where, values, shape } = condition(asked);
  const nulls = asked.patient ? ' NULLS LAST' : '';
  const present = asked.patient ? '' : ' AND date_entree IS NOT NULL';
  const answer = await pool.query({
    name: `page ${shape}`,
    text: `SELECT ${COLUMNS} FROM sejour WHERE ${where}${present}
      ORDER BY date_entree DESC${nulls}, sejour_id DESC LIMIT $${values.length + 1}`,
    values: [...values, size + 1],
  });
  return answer.rows;
}

async function count(asked) {
  const { where, values, shape } = condition(asked);
  const answer = await pool.query({
    name: `count ${shape}`,
    text: `SELECT count(*)::integer AS total FROM sejour WHERE ${where}`,
    values,
  });
  return answer.rows[0].total;
}

const made = {
  plain: (type, body) => body,
  uncounted: (type, body) => body,
  classes: (type, body) => new (resolveSchema('3_0_1', type))(body),
};

module.exports.search = async (args, { req }) => {
  const variant = req.headers['x-variant'] || 'plain';
  const make = made[variant];
  const size = Number(req.body._count || 100);
  const rows = await page(req.body, size);
  const entry = rows.slice(0, size).map((row) => ({
    fullUrl: `${base}/Encounter/${row.sejour_id}`,
    resource: make('encounter', resource(row)),
    search: { mode: 'match' },
  }));
  const bundle = { resourceType: 'Bundle', type: 'searchset', entry };
  if (variant !== 'uncounted') {
    bundle.total = rows.length > size ? await count(req.body) : rows.length;
  }
  return make('bundle', bundle);
};

module.exports.searchById = async (args) => {
  const answer = await pool.query({
    name: 'read',
    text: `SELECT ${COLUMNS} FROM sejour WHERE sejour_id = $1 AND ${SERVED}`,
    values: [args.id],
  });
  return answer.rows.length ? resource(answer.rows[0]) : null;
};
