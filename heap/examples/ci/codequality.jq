# What btheap leaks --json writes, as a code quality report of GitLab: jq -f codequality.jq leaks.json
[.leaks[] | select(.verdict == "leak") | .stack[0] as $at | {
  description: "leak: \(.rate | round) bytes per \(.per) in \($at.function)",
  check_name: "btheap",
  fingerprint: ($at | tojson | @base64),
  severity: "major",
  location: {path: ($at.file | ltrimstr("./")), lines: {begin: $at.line}}}]
