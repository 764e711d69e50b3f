# Lines of btheap leaks --format gcc to a code quality report of GitLab: jq -R -s -f codequality.jq
[splits("\n") | capture("^(?<file>.+?):(?<line>[0-9]+): warning: (?<text>.*)") | {
  description: .text,
  check_name: "btheap",
  fingerprint: (.file + (.text | sub(":[^:]*$"; "")) | @base64),
  severity: "major",
  location: {path: (.file | sub("^\\./"; "")), lines: {begin: (.line | tonumber)}}}]
