#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Gate: files, functions and lines stay small, and every file names its licence: check-size.sh
# [ROOT]. Files 600 lines, functions 70, lines 100 columns, without exceptions.
set -euo pipefail

here=$(cd "$(dirname "$0")/.." && pwd)
cd "${1:-$here}"
list=$("$here/scripts/sources.sh" .)
mapfile -t files <<<"$list"
mapfile -t scripts < <(find . \( -path ./build -o -path ./.git \) -prune \
    -o -type f \( -name '*.sh' -o -path './.ci/*' \) -printf '%P\n' | LC_ALL=C sort)

# In the C locale awk counts bytes, so the continuation bytes of UTF-8 are removed first.
LC_ALL=C exec awk '
function refuse(line, what) {
    printf "%s:%d: %s\n", name, line, what
    wrong = 1
}

function finish_file() {
    if (name == "")
        return
    if (lines > 600)
        refuse(lines, "the file has " lines " lines; split it, 600 is the most")
    if (is_script && !strict)
        refuse(1, "the script lacks: set -euo pipefail")
}

FNR == 1 {
    finish_file()
    name = FILENAME
    is_script = name !~ /\.[ch]$/
    strict = start = 0
    if (!is_script && $0 != "/* SPDX-License-Identifier: Apache-2.0 */")
        refuse(1, "the first line must be: /* SPDX-License-Identifier: Apache-2.0 */")
    if (is_script && $0 != "#!/usr/bin/env bash")
        refuse(1, "the first line must be: #!/usr/bin/env bash")
}
FNR == 2 && is_script && $0 != "# SPDX-License-Identifier: Apache-2.0" {
    refuse(2, "the second line must be: # SPDX-License-Identifier: Apache-2.0")
}

{
    lines = FNR
    columns = $0
    gsub(/[\200-\277]/, "", columns)
    if (length(columns) > 100)
        refuse(FNR, "the line has " length(columns) " columns; 100 is the most")
}

$0 == "set -euo pipefail" { strict = 1 }
/^[{]/ && !is_script { start = FNR }
/^[}]/ && !is_script {
    if (start && FNR - start > 70)
        refuse(start, "the function has " FNR - start " lines; split it, 70 is the most")
    start = 0
}

END {
    finish_file()
    exit wrong
}
' "${files[@]}" "${scripts[@]}"
