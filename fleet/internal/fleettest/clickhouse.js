// Answers ClickHouse's HTTP interface with chDB of npm, which NODE_PATH must contain. The first
// argument is the directory of the data. It prints its port.
const fs = require("fs");
const http = require("http");
const path = require("path");
const { Session } = require("chdb");

const [dir] = process.argv.slice(2);
const session = new Session(path.join(dir, "data"));
const known = ["query", "database", "default_format", "client_protocol_version", "compress", "decompress", "query_id", "network_compression_method"];
const run = async (q, format) => Buffer.from((await session.queryAsync(q, { format: format || "Native" })).bytes());
const quote = (s) => "'" + s.replace(/\\/g, "\\\\").replace(/'/g, "\\'") + "'";

// hello is the answer to the first query of clickhouse-go, a block of the format Native of a newer
// protocol. Its revision is 0, so that the blocks that follow are as chDB writes them.
function hello() {
  const bytes = [1, 0, 2, 255, 255, 255, 255, 0, 4, 1];
  const text = (s) => bytes.push(s.length, ...Buffer.from(s));
  for (const [name, type, value] of [["displayName()", "String", "chdb"], ["version()", "String", "26.7.2.1"], ["revision()", "UInt32", null], ["timezone()", "String", "UTC"]]) {
    text(name);
    text(type);
    bytes.push(0);
    value === null ? bytes.push(0, 0, 0, 0) : text(value);
  }
  return Buffer.from(bytes);
}

let files = 0;
async function answer(parameters, body) {
  const insert = parameters.get("query");
  if (!insert && body.toString().includes("displayName()")) return hello();
  const settings = [...parameters].filter(([name]) => !known.includes(name) && !name.startsWith("param_"));
  if (parameters.get("database")) await run("use `" + parameters.get("database") + "`");
  if (settings.length) await run("set " + settings.map(([name, value]) => name + " = " + quote(value)).join(", "));
  if (!insert) return run(body.toString());
  const file = path.join(dir, "insert-" + files++);
  fs.writeFileSync(file, body);
  try {
    return await run(insert.replace(/\bformat\s+native\s*$/i, "") + " select * from file(" + quote(file) + ", Native)");
  } finally {
    fs.unlinkSync(file);
  }
}

// One request after another: the database and the settings are those of the session.
let last = Promise.resolve();
const server = http.createServer((request, response) => {
  const parts = [];
  request.on("data", (p) => parts.push(p));
  request.on("end", () => {
    const parameters = new URL(request.url, "http://localhost").searchParams;
    last = last.then(() => answer(parameters, Buffer.concat(parts))).then(
      (data) => response.end(data),
      (e) => {
        const text = String(e.message || e).replace(/^Query failed: /, "");
        response.writeHead(500, { "X-ClickHouse-Exception-Code": (/Code: (\d+)/.exec(text) || [0, "0"])[1] });
        response.end(text);
      });
  });
});
server.keepAliveTimeout = 600000; // after 5 seconds, a busy client may use a connection that is being closed
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
// The end of standard input ends the server.
process.stdin.on("end", () => process.exit(0)).resume();
