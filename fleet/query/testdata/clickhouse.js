// Runs statements, a JSON list on standard input, in ClickHouse (chDB of npm, found through
// NODE_PATH), and prints the rows of each as a JSON list.
const { Session } = require("chdb");
const session = new Session();
const results = [];
for (const q of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  let text;
  try {
    text = String(session.query(q, "JSONCompactEachRow"));
  } catch (e) {
    console.error(q + "\n" + e);
    process.exit(1);
  }
  results.push(text.split("\n").filter((l) => l !== "").map((l) => JSON.parse(l)));
}
session.cleanup && session.cleanup();
console.log(JSON.stringify(results));
