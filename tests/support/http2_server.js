// A server that offers HTTP/2 and, to clients without it, HTTP/1.1: node http2_server.js FOLDER CERTIFICATE KEY
// The port (127.0.0.1) is written to FOLDER/port when it is ready. For request n FOLDER/n.json has its HTTP version, the number
// of its connection and its body. Each is answered with 200 and a rate limit.
'use strict';
const fs = require('fs');
const http2 = require('http2');
const path = require('path');

const [folder, certificate, key] = process.argv.slice(2);
let requests = 0;

function writeWhole(name, text) {
  fs.writeFileSync(path.join(folder, name + '.new'), text);
  fs.renameSync(path.join(folder, name + '.new'), path.join(folder, name));
}

const server = http2.createSecureServer({
  cert: fs.readFileSync(certificate), key: fs.readFileSync(key), allowHTTP1: true,
});
server.on('request', (request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const { remotePort } = request.stream?.session?.socket ?? request.socket;
    const facts = { version: request.httpVersion, from: remotePort, type: request.headers['content-type'],
                    body: Buffer.concat(pieces).toString('latin1') };
    writeWhole(`${++requests}.json`, JSON.stringify(facts));
    response.setHeader('X-Sentry-Rate-Limits', '60:profile_chunk:org');
    response.end('{}');
  });
});
server.listen(0, '127.0.0.1', () => writeWhole('port', String(server.address().port)));
