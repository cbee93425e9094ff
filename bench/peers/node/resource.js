// A row of the hospital as an STU3 Encounter.

const STATUS = {
  P: 'planned', PA: 'planned', E: 'in-progress', EC: 'in-progress', R: 'in-progress',
  S: 'finished', T: 'finished', F: 'finished',
};
const CLASS = {
  URG: 'EMER', HC: 'IMP', HP: 'IMP', HS: 'IMP', PRE: 'PRENC', PAD: 'PRENC',
  EXT: 'AMB', CS: 'AMB', HDJ: 'AMB', SEA: 'REC', DIA: 'REC',
};
const LABEL = {
  EMER: 'emergency', IMP: 'inpatient encounter', PRENC: 'pre-admission',
  AMB: 'ambulatory', REC: 'recurring', UNK: 'unknown',
};
const SYSTEM = {
  2: 'urn:oid:1.2.250.1.999.1.2',
  3: 'urn:oid:1.2.250.1.999.1.3',
};
const UNIT = 'https://example.org/fhir/StructureDefinition/functional-unit';
const TYPE = {
  coding: [{
    system: 'http://www.interopsante.org/fhir/valueset/fr-encounter-identifier-type',
    version: '3.0.1',
    code: 'VN',
    display: 'Visit Number',
  }],
};

const two = (number) => String(number).padStart(2, '0');

// The process runs in the hospital's time zone.
function instant(date) {
  const ahead = -date.getTimezoneOffset();
  const local = new Date(date.getTime() + ahead * 60000).toISOString().slice(0, -1);
  return `${local}+${two(Math.floor(ahead / 60))}:${two(ahead % 60)}`;
}

function period(row) {
  const bounds = {};
  if (row.date_entree) {
    bounds.start = instant(row.date_entree);
  }
  if (row.date_sortie && row.date_sortie.getFullYear() !== 2999) {
    bounds.end = instant(row.date_sortie);
  }
  return bounds;
}

module.exports.CLASS = CLASS;
module.exports.STATUS = STATUS;
module.exports.SYSTEM = SYSTEM;

module.exports.resource = (row) => {
  const hospital = { reference: `Organization/${row.etab_id}` };
  const code = CLASS[row.type_sejour] || 'UNK';
  return {
    resourceType: 'Encounter',
    id: String(row.sejour_id),
    meta: row.maj ? { lastUpdated: instant(row.maj) } : undefined,
    identifier: [{
      use: 'official',
      type: TYPE,
      system: SYSTEM[row.etab_id],
      value: row.num_venue,
      assigner: hospital,
    }],
    status: STATUS[row.etat],
    subject: { reference: `Patient/${row.patient_id}` },
    period: period(row),
    serviceProvider: {
      extension: [{ url: UNIT, valueString: row.uf_courante }],
      reference: hospital.reference,
    },
    class: { code, display: LABEL[code], system: 'http://hl7.org/fhir/v3/ActCode' },
  };
};
