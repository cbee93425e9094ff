// Stays: read and search, one statement a page and one for its total.

const { Pool } = require('pg');
const { CLASS, STATUS, SYSTEM, resource } = require('./resource.js');

const pool = new Pool({ connectionString: process.env.DATABASE_URL, max: 8 });
const base = process.env.BASE_URL;

const COLUMNS = `sejour_id, etab_id, num_venue, patient_id, etat, type_sejour, date_entree,
  date_sortie, uf_courante, maj_utc AT TIME ZONE 'UTC' AS maj`;
const SERVED = "(etat NOT IN ('A', 'AN', 'X', 'SUP') OR etat IS NULL)";

function own(table, code) {
  return Object.keys(table).filter((key) => table[key] === code);
}

function condition(asked) {
  const parts = [SERVED];
  const values = [];
  const compared = [];
  const meet = (name, comparison, value) => {
    if (asked[name]) {
      values.push(value(asked[name]));
      compared.push(comparison);
      parts.push(comparison.replace('?', `$${values.length}`));
    }
  };
  const plain = (value) => value;
  meet('patient', 'patient_id = ?', (value) => value.replace('Patient/', ''));
  meet('functional-unit', 'uf_courante = ?', plain);
  // The library takes a parameter it knows, like date, once only: these it does not know.
  meet('from', 'date_entree >= ?', plain);
  meet('before', 'date_entree < ?', plain);
  meet('changed-from', 'maj_utc >= ?', (value) => value.replace('Z', ''));
  meet('changed-before', 'maj_utc < ?', (value) => value.replace('Z', ''));
  meet('status', 'etat = ANY(?)', (value) => own(STATUS, value));
  meet('class', 'type_sejour = ANY(?)', (value) => own(CLASS, value));
  meet('_id', 'sejour_id = ANY(?)', (value) => value.split(','));
  meet('identifier', 'num_venue = ?', (value) => value.split('|').pop());
  if (asked.identifier && asked.identifier.includes('|')) {
    meet('identifier', 'etab_id = ?', (value) => own(SYSTEM, value.split('|')[0])[0]);
  }
  return { where: parts.join(' AND '), values, shape: compared.join() };
}

function order(asked) {
  const sort = asked._sort || '-date';
  const column = sort.endsWith('date') ? 'date_entree' : 'maj_utc';
  const direction = sort.startsWith('-') ? 'DESC' : 'ASC';
  const isFew = asked.patient || asked._id || asked.identifier;
  return `${isFew ? '' : ` AND ${column} IS NOT NULL`}
    ORDER BY ${column} ${direction} ${isFew ? 'NULLS LAST' : ''}, sejour_id ${direction}`;
}

async function page(asked, size) {
  const { where, values, shape } = condition(asked);
  const answer = await pool.query({
    name: `page ${shape} ${asked._sort}`,
    text: `SELECT ${COLUMNS} FROM sejour WHERE ${where}${order(asked)}
      LIMIT $${values.length + 1}`,
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

module.exports.search = async (args, { req }) => {
  const size = Number(req.body._count || 100);
  const rows = await page(req.body, size);
  const entry = rows.slice(0, size).map((row) => ({
    fullUrl: `${base}/Encounter/${row.sejour_id}`,
    resource: resource(row),
    search: { mode: 'match' },
  }));
  const bundle = { resourceType: 'Bundle', type: 'searchset', entry };
  if (rows.length <= size) {
    bundle.total = rows.length;
  } else if (req.body._total !== 'none') {
    bundle.total = await count(req.body);
  }
  return bundle;
};

module.exports.searchById = async (args) => {
  const answer = await pool.query({
    name: 'read',
    text: `SELECT ${COLUMNS} FROM sejour WHERE sejour_id = $1 AND ${SERVED}`,
    values: [args.id],
  });
  return answer.rows.length ? resource(answer.rows[0]) : null;
};
