// Who may ask: a signed token, verified at every request as the library's guide shows.

const fs = require('fs');
const jwt = require('jsonwebtoken');
const { Strategy } = require('passport-http-bearer');

const key = fs.readFileSync(process.env.PUBLIC_KEY);
const claims = {
  algorithms: ['RS256'],
  audience: process.env.AUDIENCE,
  issuer: process.env.ISSUER,
};

module.exports.strategy = new Strategy((token, done) => {
  jwt.verify(token, key, claims, (error, said) => done(null, error ? false : said));
});
