#!/usr/bin/env bash

# Copyright The Slipstream Authors.
# SPDX-License-Identifier: Apache-2.0

# Demonstrates the mirror, a catalog, an environment, notifications and a pipeline on a development cluster: starts one, changes
# objects in it, and shows the result in Git, the catalog, the environment, a mail and the pipeline's receiver. `make demo` and
# `make demo-down` build the prerequisites and call it.
#
#   hack/demo.sh up     start the demo, or show a running one
#   hack/demo.sh down   stop it and remove its files
#   hack/demo.sh env    print the environment variables for a shell, for eval
#
# DEMO_DIR is the folder of the cluster, .dev/demo unless set. DEMO_LIMIT is the timeout of each step in seconds, once the cluster is up,
# 60 unless set.

set -o errexit -o nounset -o pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly dir=${DEMO_DIR:-.dev/demo}
readonly limit=${DEMO_LIMIT:-60}
readonly folder=clusters/demo
readonly inbox=${dir}/inbox
readonly staging=/apis/configbutler.ai/v1alpha1/namespaces/teams/environments/staging

# heading prints the heading of a step.
heading() { printf '\n==> %s\n' "$*"; }

fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

main() {
  case ${1:-} in
    up) up ;;
    down) down ;;
    env) print_env ;;
    *) fail "usage: hack/demo.sh up|down|env" ;;
  esac
}

up() {
  require_programs
  start_cluster
  load_env
  if demo_has_run; then
    heading "The demo runs already. Its results:"
    is_inbox_open || start_notifications > /dev/null
  else
    apply_production
    build_environment
    start_notifications
    start_pipeline
    change_production
    sync_changes
    take_back_change
    install_kind
  fi
  show
  open_page
  explain
}

down() {
  close_page
  close_inbox
  if [[ ! -e ${dir}/cluster.json ]]; then
    echo "No demo runs in ${dir}."
    return
  fi
  bin/dev down --dir "${dir}"
  echo "The demo has stopped, and its files in ${dir} are removed."
}

# print_env prints the variables of the cluster as exports, with kubectl in the PATH. They include those that the pages in docs use.
print_env() {
  [[ -f ${dir}/env ]] || fail "no demo runs in ${dir}; start it with: make demo"
  load_env
  printf 'export %s=%q\n' KUBECONFIG "${KUBECONFIG}" KUBECTL "${KUBECTL}" KUBECACHEDIR "${KUBECACHEDIR}" \
    GIT_URL "${GIT_URL}" GIT_ROOT "${GIT_ROOT}" GIT_SSH_URL "${GIT_SSH_URL}" GIT_SSH_KEY "${GIT_SSH_KEY}" \
    GIT_SSH_KNOWN_HOSTS "${GIT_SSH_KNOWN_HOSTS}" GIT_PASSWORD any RECEIVER_URL "${RECEIVER_URL}" RECEIVER_LOG "${RECEIVER_LOG}" \
    SERVER_URL "${SERVER_URL}" SERVER_LOG "${SERVER_LOG}" CLUSTER_DIR "$(cd "${dir}" && pwd)"
  printf 'export PATH=%q:%q:%s\n' "$(dirname "${KUBECTL}")" "${PWD}/bin" "\"\${PATH}\""
}

require_programs() {
  command -v git > /dev/null || fail "git is needed: install it and run make demo again"
  [[ -x bin/dev && -x bin/slipstream && -x bin/kubectl-slipstream ]] || fail "the programs are not built; run: make demo"
}

# start_cluster starts a cluster with the server in dir, replacing an unusable one.
start_cluster() {
  if is_serving /readyz; then
    is_serving /apis/configbutler.ai/v1alpha1 || bin/dev start-server --dir "${dir}"
    return
  fi
  if [[ -e ${dir}/cluster.json ]]; then
    heading "Removing the files of an earlier demo in ${dir}"
    close_page
    close_inbox
    bin/dev down --dir "${dir}"
  fi
  heading "Starting a cluster in ${dir}: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok, a Git server, a receiver," \
    "slipstream"
  # On a busy machine, kube-apiserver reports late who made a change.
  bin/dev up --dir "${dir}" --pods -- --attribution-max-wait=30s > /dev/null ||
    fail "the cluster did not start; see the output above for the reason, then run make demo again"
}

# is_serving reports whether a cluster in dir exists and serves a path.
is_serving() { [[ -f ${dir}/env ]] && (load_env && kubectl get --raw "$1" --request-timeout=10s) > /dev/null 2>&1; }

load_env() {
  # shellcheck source=/dev/null
  . "${dir}/env"
  export KUBECONFIG
  # kubectl's cache of this cluster is removed with the cluster.
  KUBECACHEDIR=$(dirname "${KUBECONFIG}")/cache
  export KUBECACHEDIR
}

kubectl() { "${KUBECTL}" "$@"; }

# as runs kubectl, which finds the plugin, as one of the demo's users.
as() {
  local user=$1
  shift
  local kubeconfig
  kubeconfig=$(dirname "${KUBECONFIG}")/${user}.demo
  [[ -s ${kubeconfig} ]] || bin/dev user --dir "${dir}" --name "${user}" > "${kubeconfig}"
  PATH="${PWD}/bin:${PATH}" KUBECONFIG="${kubeconfig}" "${KUBECTL}" "$@"
}

mirror_git() { git --git-dir "${GIT_ROOT}/shop.git" "$@"; }

# The result of the last step shows whether the demo has run.
demo_has_run() { kubectl get -n shop coupons.shop.example.com spring > /dev/null 2>&1; }

apply_production() {
  heading "Applying production: artifacts/demo/shop.yaml"
  kubectl apply -f artifacts/demo/shop.yaml
  heading "Applying the mirror: artifacts/demo/mirror.yaml"
  sed "s|\${GIT_URL}|${GIT_URL}|" artifacts/demo/mirror.yaml | kubectl apply -f -
  kubectl wait -n shop --for=condition=Ready --timeout="${limit}s" \
    gitrepoconfig/shop gitdestination/shop watchrule/everything clusterwatchrule/definitions ||
    fail "the mirror did not become ready; for the reason, see kubectl get slipstream -A and ${SERVER_LOG}"
  printf '      in Git: %s objects\n' "$(mirror_git ls-tree -r --name-only "main:${folder}" | wc -l | tr -d ' ')"
  heading "Applying the catalog: artifacts/demo/catalog.yaml"
  kubectl apply -f artifacts/demo/catalog.yaml
  kubectl wait -n teams --for=condition=Ready --timeout="${limit}s" appcatalog/shop ||
    fail "the catalog did not become ready; for the reason, see kubectl get cat -n teams and ${SERVER_LOG}"
}

build_environment() {
  heading "Applying an environment of the catalog, and the permissions of its users: artifacts/demo/environment.yaml"
  kubectl apply -f artifacts/demo/environment.yaml
  wait_for_environment '{.status.observedGeneration}=1'
  heading "dana, a developer of the team, requests its first sync, and adds a ConfigMap of her own"
  sync_staging dana
  kubectl get deployments,services,configmaps,secrets -n shop-staging -l configbutler.ai/environment=staging -o name
  run_as dana apply -f artifacts/demo/notes.yaml
}

# start_notifications starts a mail server and a webhook, and sends notifications to both.
start_notifications() {
  open_inbox
  heading "Applying notifications, as mail and to a webhook: artifacts/demo/notifications.yaml"
  local variable substitutions=()
  while IFS= read -r variable; do
    substitutions+=(-e "s|\${${variable%%=*}}|${variable#*=}|")
  done < "${inbox}/env"
  sed "${substitutions[@]}" artifacts/demo/notifications.yaml | kubectl apply -f -
  kubectl wait -n slipstream-system notificationsink/mail --for=condition=Ready --timeout="${limit}s" > /dev/null
  kubectl wait -n teams notificationsink/webhook --for=condition=Ready --timeout="${limit}s" > /dev/null
}

# open_inbox starts the mail server and the webhook in the background. What an earlier one has received is kept.
open_inbox() {
  mkdir -p "${inbox}"
  rm -f "${inbox}/env"
  nohup bin/dev inbox --dir "${inbox}" < /dev/null > "${inbox}/log" 2>&1 &
  echo "$!" > "${inbox}/pid"
  wait_until "the mail server, whose output is in ${inbox}/log" test -f "${inbox}/env"
}

is_inbox_open() { is_running "$(cat "${inbox}/pid" 2> /dev/null)" "dev inbox"; }

# close_inbox ends the mail server and the webhook, if they run, and removes what they have received.
close_inbox() {
  if is_inbox_open; then
    kill "$(cat "${inbox}/pid")"
  fi
  rm -rf "${inbox}"
}

# is_running reports whether a process runs a program with arguments.
is_running() { [[ -n $1 ]] && ps -o args= -p "$1" 2> /dev/null | grep --quiet --fixed-strings "$2"; }

# show_mail waits for the mail about an object that contains a text, and prints it.
show_mail() {
  wait_until "the mail about $1" find_mail "$@"
  printf '      mail after %ss, in %s:\n' "${elapsed}" "$(find_mail "$@")"
  sed 's/^/      | /' "$(find_mail "$@")"
}

# find_mail prints the path of the newest mail about an object that contains a text.
find_mail() {
  local path newest=
  while IFS= read -r path; do
    if [[ -f ${path} ]] && grep --quiet -e "^Subject:.*$1" "${path}" && grep --quiet --fixed-strings -e "$2" "${path}"; then
      newest=${path}
    fi
  done < <(printf '%s\n' "${inbox}"/mails/*.txt | sort --version-sort)
  [[ -n ${newest} ]] && printf '%s\n' "${newest}"
}

# show_message waits until the webhook has a message that matches, and prints it.
show_message() {
  wait_until "the webhook to receive $1" find_message "$1"
  printf '      webhook after %ss: %s\n' "${elapsed}" "$(find_message "$1")"
}

find_message() { grep -e "$1" "${inbox}/webhook.log" | tail -1 | grep .; }

# start_pipeline starts sending existing objects and later changes to the receiver.
start_pipeline() {
  heading "Applying a pipeline, whose receiver prints the events it receives: artifacts/demo/pipeline.yaml"
  echo "      The warning is about a kind that the demo installs later."
  sed "s|\${RECEIVER_URL}|${RECEIVER_URL}|" artifacts/demo/pipeline.yaml | kubectl apply -f -
  wait_for_event + 'apps/v1 Deployment shop-staging/web'
  kubectl wait --for=condition=Ready --timeout="${limit}s" syncpipeline/index
}

change_production() {
  heading "Changing production, as two users who are allowed to edit the namespace"
  echo "      A commit waits until the author of its change is certain. With both webhooks, as here, that usually takes 50 ms."
  run_as jane set image -n shop deployment/web web=registry.example.com/shop/web:1.9
  wait_for_file apps/v1/deployments/shop/web.yaml 'web:1.9'
  show_mail 'Deployment shop/web' 'web:1.9'
  wait_for_environment '{.status.changedWorkloadCount}=1'
  show_message 'Prompted .*changed by jane'
  run_as dana get environments -n teams
  run_as bob patch -n shop configmap/web -p '{"data":{"BANNER":"Winter sale"}}'
  wait_for_file core/v1/configmaps/shop/web.yaml 'Winter sale'
  run_as bob delete -n shop deployment/report
  wait_for_removal apps/v1/deployments/shop/report.yaml
  wait_for_event - 'apps/v1 Deployment shop/report'
  kubectl wait -n teams appcatalog/shop --for=condition=WorkloadsMissing --timeout="${limit}s" > /dev/null
}

# sync_changes applies the changes of production as a developer.
sync_changes() {
  heading "The environment reports the changes, and applies them when a user requests a sync"
  wait_for_environment '{.status.changedWorkloadCount}=1' '{.status.changedDependencies[0].count}=1'
  run_as dana get environments -n teams
  heading "The changes that a sync would apply"
  run_raw_as dana get "${staging}/diff" '{{range .status.changes}}{{$of := .}}{{range .fields}}{{if .owners
    }}{{$of.kind}}/{{$of.name}} {{.field}}: {{.before}} -> {{.after}}{{"\n"}}{{end}}{{end}}{{end}}' | grep -v /metadata/labels/
  heading "dana requests a sync. Her own ConfigMap is kept"
  sync_staging dana
  run_as dana get environments -n teams
  run_as dana get configmaps -n shop-staging
}

# take_back_change shows how a user finds and undoes a bad change of another one.
take_back_change() {
  local change
  heading "bob stops the cart by mistake. jane finds the change, reads it, and takes it back"
  run_as bob scale -n shop deployment/cart --replicas=0
  wait_for_file apps/v1/deployments/shop/cart.yaml 'replicas: 0'
  wait_until "the change to be listed" is_change_listed cart
  run_as jane slipstream log -n shop --limit 1
  change=$(as jane slipstream log deployment/cart -n shop --limit 1 | awk 'END { print $NF }')
  run_as jane slipstream show "${change}" -n shop
  run_as jane slipstream undo "${change}" -n shop --yes
  wait_for_file apps/v1/deployments/shop/cart.yaml 'replicas: 2'
}

# is_change_listed reports whether there is an update of an object among the changes of the shop.
is_change_listed() { kubectl get changes -n shop --field-selector "object.name=$1,operation=Update" -o name | grep --quiet .; }

# sync_staging requests a sync of everything, and waits until the environment is up to date and its workloads are ready.
sync_staging() {
  run_raw_as "$1" create "${staging}/sync" '{{.status.message}}{{"\n"}}' <<< '{}'
  wait_for_environment '{.status.conditions[?(@.type=="CatalogUpToDate")].status}=True' \
    '{.status.conditions[?(@.type=="DependenciesUpToDate")].status}=True'
  wait_for_readiness
}

# wait_for_readiness waits until all workloads of the environment are ready.
wait_for_readiness() {
  wait_for_environment '{.status.workloadsReady.ready}=3' '{.status.conditions[?(@.type=="Ready")].status}=True'
}

# wait_for_environment waits until fields of the environment have the given values.
wait_for_environment() {
  local field
  for field in "$@"; do
    kubectl wait -n teams environment/staging --for=jsonpath="${field}" --timeout="${limit}s" > /dev/null ||
      fail "the environment did not reach ${field}; for the reason, see kubectl get environments -n teams and ${SERVER_LOG}"
  done
}

# run_raw_as prints the path that a user gets, or posts standard input to, and the response formatted by a template.
run_raw_as() {
  local user=$1 verb=$2 path=$3 template=$4 response
  local arguments=("${verb}" --raw "${path}")
  if [[ ${verb} == create ]]; then arguments+=(-f -); fi
  printf '%s$ kubectl%s\n' "${user}" "$(quoted "${arguments[@]}")"
  response=$(as "${user}" "${arguments[@]}")
  kubectl annotate --local -f - shown=true -o go-template="${template}" <<< "${response}"
}

install_kind() {
  heading "Installing a new kind, and creating an object of it"
  kubectl apply -f artifacts/demo/coupon-definition.yaml
  wait_until "the new kind to be established" is_established coupons.shop.example.com
  wait_for_file apiextensions.k8s.io/v1/customresourcedefinitions/coupons.shop.example.com.yaml
  wait_for_event + coupons.shop.example.com
  kubectl apply -f artifacts/demo/coupon.yaml
  wait_for_file shop.example.com/v1/coupons/shop/spring.yaml
  wait_for_event + 'shop.example.com/v1 Coupon shop/spring'
  kubectl wait --for=jsonpath='{.status.sinks[0].delivered}'=7 --timeout="${limit}s" syncpipeline/index > /dev/null
  kubectl wait -n shop gds/shop --for=jsonpath='{.status.state}'='Up to date' --timeout="${limit}s" > /dev/null
  wait_for_readiness
}

# is_established reports whether a definition is established. kubectl wait fails at once for a new one, which has no conditions yet.
is_established() { kubectl wait --for=condition=Established --timeout=1s "crd/$1" 2> /dev/null; }

# run_as prints a user's command and runs it.
run_as() {
  local user=$1
  shift
  printf '%s$ kubectl%s\n' "${user}" "$(quoted "$@")"
  as "${user}" "$@"
}

# quoted prints arguments quoted for a shell, each preceded by a space.
quoted() {
  local argument
  for argument in "$@"; do
    case ${argument} in
      *[!A-Za-z0-9=/:._-]*) printf " '%s'" "${argument}" ;;
      *) printf ' %s' "${argument}" ;;
    esac
  done
}

# wait_for_file waits until the file at a path below the folder exists and contains a text.
wait_for_file() {
  wait_until "$1 to be written to Git" file_has_text "$1" "${2:-}"
  print_commit "$1"
}

# wait_for_removal waits until there is no file at a path below the folder.
wait_for_removal() {
  wait_until "$1 to be removed from Git" file_is_absent "$1"
  print_commit "$1"
}

file_has_text() {
  mirror_git show "main:${folder}/$1" 2> /dev/null | grep --fixed-strings --quiet -e "$2"
}

file_is_absent() { ! mirror_git cat-file -e "main:${folder}/$1" 2> /dev/null; }

# print_commit prints the last commit that changed the file at a path below the folder.
print_commit() { printf '      in Git after %ss: %s\n' "${elapsed}" "$(mirror_git log -1 --format='%h %s' main -- "${folder}/$1")"; }

# wait_for_event waits until the receiver has printed that an object was added (+) or removed (-).
wait_for_event() {
  wait_until "the receiver to print $2" find_events "$@"
  printf '      received after %ss: %s\n' "${elapsed}" "$(find_events "$@" | tail -1)"
}

find_events() { grep --extended-regexp -e " [$1]  $2\$" "${RECEIVER_LOG}"; }

# wait_until polls a check without output, and sets elapsed to the seconds it took.
wait_until() {
  local description=$1 start
  shift
  start=$(now)
  local end=$((SECONDS + limit)) next_report=$((SECONDS + 5))
  until "$@" > /dev/null; do
    ((SECONDS < end)) ||
      fail "timed out after ${limit}s waiting for ${description}; for the reason, see kubectl get slipstream -A and ${SERVER_LOG}"
    if ((SECONDS >= next_report)); then
      echo "      still waiting for ${description}"
      next_report=$((SECONDS + 5))
    fi
    sleep 0.05
  done
  elapsed=$(seconds_since "${start}")
}

# now prints the time in seconds, with a fraction if the shell supports it.
now() { printf '%s\n' "${EPOCHREALTIME:-${SECONDS}}" | tr , .; }

seconds_since() { awk -v start="$1" -v ended="$(now)" 'BEGIN { printf "%.1f", ended - start }'; }

show() {
  heading "The commits, oldest first: git log --stat"
  mirror_git --no-pager log --reverse --date=format:%H:%M:%S --format='%h  %cd  %an  %s' --stat=100 main | grep -v '^$'
  heading "The commit of jane's change: git show. Its trailer Attribution has the webhook that reported her as the author"
  mirror_git --no-pager show "$(mirror_git log -1 --format=%h --grep='UPDATE.*deployments shop/web' main)"
  heading "The state of the destination: kubectl get gds -n shop"
  kubectl get gds -n shop
  heading "The catalog: kubectl get appcatalogs -n teams"
  kubectl get appcatalogs -n teams
  heading "The changes of the catalog and of the environment, with their authors: kubectl get syncstatuses -n teams --sort-by=.status.detectedAt"
  kubectl get syncstatuses -n teams --sort-by=.status.detectedAt
  heading "The environment, and how many of its workloads are ready: kubectl get environments -n teams -o wide"
  kubectl get environments -n teams -o wide
  heading "The pipeline: kubectl get syncpipelines"
  kubectl get syncpipelines
  heading "The output of its receiver, + for added and - for removed objects: ${RECEIVER_LOG}"
  cat "${RECEIVER_LOG}"
  heading "The notifications: kubectl get sink -A. Mails are in ${inbox}/mails, as .eml and .txt; the webhook's messages are in" \
    "${inbox}/webhook.log"
  kubectl get sink -A
  cat "${inbox}/webhook.log"
  heading "One file of the mirror: ${folder}/apps/v1/deployments/shop/web.yaml"
  mirror_git --no-pager show "main:${folder}/apps/v1/deployments/shop/web.yaml"
}

# open_page serves the page in the background, and prints its link. A page that an earlier run has opened is closed.
open_page() {
  close_page
  local log=${dir}/page.log
  nohup bin/kubectl-slipstream dashboard --all-namespaces --allow-changes --no-open < /dev/null > "${log}" 2>&1 &
  echo "$!" > "${dir}/page.pid"
  wait_until "the page to be served, whose output is in ${log}" grep --quiet '^http://' "${log}"
  heading "The page of the user admin, who may do everything: kubectl slipstream dashboard --all-namespaces --allow-changes"
  echo "  $(head -1 "${log}")"
  echo "      The link opens once, within a minute. make demo prints another one."
}

# close_page ends the page, if it is served.
close_page() {
  local pid
  pid=$(cat "${dir}/page.pid" 2> /dev/null) || return 0
  if is_running "${pid}" 'kubectl-slipstream dashboard'; then
    kill "${pid}"
  fi
  rm -f "${dir}/page.pid" "${dir}/page.log"
}

explain() {
  heading "The demo keeps running. Explore it:"
  cat << TEXT
  eval "\$(hack/demo.sh env)"          # KUBECONFIG, GIT_URL, and kubectl with our plugin in the PATH

or, in any other shell and folder:

  export KUBECONFIG=${KUBECONFIG}
  export PATH=$(dirname "${KUBECTL}"):${PWD}/bin:\$PATH

  kubectl get slipstream -A
  kubectl explain environment.spec
  kubectl slipstream log -A
  kubectl slipstream dashboard
  kubectl slipstream notify test webhook -n teams --event Failed
  kubectl slipstream sync-pipeline index --full
  git clone ${GIT_URL}/shop.git

docs/tour.md continues from here, in five minutes.
The server's log: ${SERVER_LOG}
Stop it with: make demo-down
TEXT
}

main "$@"
