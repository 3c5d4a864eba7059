#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scripts/on-k8s.sh also starts API servers of other versions: k8s_server.sh. A newer one refuses
# flags that ours accepts; here a script in front of ours refuses them. Prints TAP.
set -euo pipefail

# shellcheck source=tests/e2e/kit.sh
. "$(dirname "$0")/kit.sh"
cd "$(dirname "$0")/../.."

mapfile -t programs < <(scripts/kube-apiserver.sh --paths)
export XDG_CACHE_HOME=$work/cache
mkdir -p "$XDG_CACHE_HOME/leasehold"
ln -s "${programs[1]}" "${programs[2]}" "$XDG_CACHE_HOME/leasehold"
cat >"$XDG_CACHE_HOME/leasehold/${programs[0]##*/}" <<SERVER
#!/usr/bin/env bash
for word; do
    if [[ \$word =~ ^--(insecure-port|endpoint-reconciler-type)(=|\$) ]]; then
        printf 'Error: unknown flag: %s\n' "\${word%%=*}" >&2
        exit 1
    fi
done
exec "${programs[0]}" "\$@"
SERVER
chmod 755 "$XDG_CACHE_HOME/leasehold/${programs[0]##*/}"

verdict 'a flag that the server does not know is not passed' \
    says 0 '^k8s://leasehold-test' scripts/on-k8s.sh printf '%s\n'

sed -i 's/insecure-port|/etcd-serverz|etcd-servers|/' \
    "$XDG_CACHE_HOME/leasehold/${programs[0]##*/}"
verdict 'a server that does not start is told as such' \
    says 1 'not ok - ' scripts/on-k8s.sh true
finish
