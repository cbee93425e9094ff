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

const BOUND = { ge: '>=', lt: '<' };

// What a parameter compares, and with which value.
function comparisons(name, text) {
  switch (name) {
    case 'patient': return [['patient_id = ?', text.replace('Patient/', '')]];
    case 'unit': return [['uf_courante = ?', text.split('|')[1]]];
    case 'date': return [[`date_entree ${BOUND[text.slice(0, 2)]} ?`, text.slice(2)]];
    case '_lastUpdated':
      return [[`maj_utc ${BOUND[text.slice(0, 2)]} ?`, text.slice(2).replace('Z', '')]];
    case 'status': return [['etat = ANY(?)', own(STATUS, text)]];
    case 'class': return [['type_sejour = ANY(?)', own(CLASS, text)]];
    case '_id': return [['sejour_id = ANY(?)', text.split(',')]];
    case 'identifier': {
      const [number, system] = text.split('|').reverse();
      const ofHouse = [['etab_id = ANY(?)', own(SYSTEM, system)]];
      return [['num_venue = ?', number], ...(system ? ofHouse : [])];
    }
    default: return [];
  }
}

function condition(asked) {
  const compared = Object.entries(asked).flatMap(
    ([name, texts]) => [texts].flat().flatMap((text) => comparisons(name, text)));
  const parts = compared.map(([part], at) => part.replace('?', `$${at + 1}`));
  return {
    where: [SERVED, ...parts].join(' AND '),
    values: compared.map(([, value]) => value),
    shape: parts.join(),
  };
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

// The library takes a parameter that it knows, like date, once only: it knows none of these.
function askedOf(body) {
  const names = Object.keys(body).filter((name) => name.startsWith('asked-'));
  return Object.fromEntries(names.map((name) => [name.slice(6), body[name]]));
}

module.exports.search = async (args, { req }) => {
  const asked = askedOf(req.body);
  const size = Number(asked._count || 10);
  const rows = await page(asked, size);
  const entry = rows.slice(0, size).map((row) => ({
    fullUrl: `${base}/Encounter/${row.sejour_id}`,
    resource: resource(row),
    search: { mode: 'match' },
  }));
  const bundle = { resourceType: 'Bundle', type: 'searchset', entry };
  if (rows.length <= size) {
    bundle.total = rows.length;
  } else if (asked._total !== 'none') {
    bundle.total = await count(asked);
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
