// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// target is the limit of a result.
type target struct {
	// what describes the target in the table.
	what string
	// benchmarks matches the names of the benchmarks that measure it, and unit is the unit of the value.
	benchmarks *regexp.Regexp
	unit       string
	// limit is the maximum, or with atLeast the minimum.
	limit   float64
	atLeast bool
	// accepted is the worst value with which the check does not fail: by default a tenth worse than the limit, because values vary by as
	// much from run to run. It is further away where the limit is missed; docs/performance.md describes why.
	accepted float64
}

// tolerance is how much worse than a limit a value is accepted.
const tolerance = 0.1

// targets is in the order of the output.
var targets = []target{
	atMost("build a commit / git fast-import", "^Commit/", "build/native", 0.4),
	atMost("build and push / fast-import + git push", "^Commit/(files=1000/|files=50000/commits=1?\\d\\d?/)", "build+push/native", 0.6),
	atMost("the same, 50 000 files, 1000 commits", "^Commit/files=50000/commits=1000/", "build+push/native", 0.75),
	atMost("build one commit per change / fast-import", "^Commit/.*/changed=1$", "build/native", 1/1.5),
	atMost("the same, one folder of 10 000 files", "^FlatFolder/", "build/native", 1.0/3),
	atMost("pack bytes per commit in that folder", "^FlatFolder/", "packB/commit", 10<<10),
	atMost("build time, 50 000 files / 1000 files", "^Size$", "50k/1k", 1.3).accepting(1.6),
	atMost("start on 50 000 files / blobless git fetch", "^Start$", "start/native", 1.2),
	atMost("start on 100 000 files, plain server / git fetch", "^PlainServer$", "start/native", 1),
	atMost("read one of these files / git fetch", "^PlainServer$", "file/native", 1),
	atMost("memory of a branch of 50 000 files, MiB", "^Start$", "heapMiB", 40),
	atMost("resident with a branch of 50 000 files, MiB", "^Memory$", "rss-MiB", 40),
	atLeast("go-git work tree / 1000 changes of 10 000 files", "^WorkTree$", "gogit/ours", 500),

	atLeast("creates, one client / etcd", "^Storage/Create/clients=1$", "bolt/etcd", 1),
	atLeast("creates, 32 clients / etcd", "^Storage/Create/clients=32$", "bolt/etcd", 1.4),
	atLeast("updates, 32 clients / etcd", "^Storage/Update/clients=32$", "bolt/etcd", 1.7),
	atLeast("gets, one client / etcd", "^Storage/Get/clients=1$", "bolt/etcd", 5),
	atLeast("gets, 32 clients / etcd", "^Storage/Get/clients=32$", "bolt/etcd", 2.8),
	atLeast("lists of 10 000 / etcd", "^Storage/List/", "bolt/etcd", 1),
	atMost("write to 50 watchers, 99 % / etcd", "^Storage/FanOut/", "p99/etcd", 1).accepting(2),

	atMost("newest 50 Changes of a namespace, of 200 000, ms", "^History/Newest$", "ms", 20),
	atMost("Changes of one object, of 200 000, ms", "^History/OneObject$", "ms", 100),
	atMost("live heap of 199 000 more Changes, MiB", "^History/Memory$", "MiB-more", 8),
	atMost("CPU of a mirrored change with the history / without", "^MirrorHistory$", "with/without", 1.1),
	atMost("an object as it was, 50 000 files, 10 000 commits, ms", "^Past$", "first-ms", 2000),
	atMost("the same again, from the caches, ms", "^Past$", "cached-ms", 300),

	atMost("admission review at 500 a second, 99 %, ms", "^Admission$", "direct-p99-ms", 5).accepting(7.5),
	atMost("the same, 99 %, through the aggregator / at the server", "^Admission$", "aggregator/direct", 2).accepting(10),
	atMost("writing 10 000 objects, audit webhook / none, CPU", "^Cost/webhooks=audit$", "cpu/none", 1.3),
	atLeast("changes a second, 20 users, 20 objects, audit webhook", "^Authors/webhooks=audit$", "changes/s", 500).accepting(350),
	atLeast("right authors of those, %", "^Authors/", "right-%", 100).exactly(),
	atMost("wrong authors of those", "^Authors/", "wrong", 0).exactly(),
	atMost("change to the outbox, look-up of an unreported author / none", "^UnknownAuthor$", "lookup/plain", 1.05),

	atMost("change to record beyond the batch window, ms", "^Catalogs/Detection$", "max-ms-over-window", 1000),
	atMost("10 000 changes of 200 workloads: peak over idle, MiB", "^Catalogs/Storm/", "peak-MiB-over-idle", 150),

	atMost("sync of 100 workloads, 200 dependencies / kubectl apply", "^Environments/Sync/", "sync/kubectl", 2),
	atMost("the same, seconds", "^Environments/Sync/", "sync-s", 30),
	atMost("change of a ConfigMap to prompt beyond the window, ms", "^Environments/Detection$", "max-ms-over-window", 1000),
	atMost("list of 1000 environments / of a CRD's objects", "^Environments/List/", "list/crd", 1.3),
	atMost("kubectl slipstream status -A of 1000 environments, ms", "^Environments/List/", "status-ms", 1000),
	atMost("the same, resident, MiB", "^Environments/List/", "status-MiB", 100),

	atMost("change of a label to the receiver beyond the waits, ms", "^Pipelines/Change$", "max-ms-over-waits", 1000),
	atMost("10 000 objects sent again / kubectl get", "^Pipelines/Full/", "full/get", 1.5),

	atMost("page of 1000 environments: first contentful paint, ms", "^Page/Start$", "paint-ms", 1000),
	atMost("the same, until its list shows rows, ms", "^Page/Start$", "rows-ms", 1000),
	atMost("the same, longest task while the page starts, ms", "^Page/Start$", "longest-ms", 100),
	atMost("the same, while it is scrolled and filtered, ms", "^Page/(Environments|Filter)$", "longest-ms", 100),
	atMost("the same, while 100 environments change, ms", "^Page/Updates", "longest-ms", 100).accepting(150),
	atMost("longest task in the history of 100 000 Changes, ms", "^Page/History/", "longest-ms", 100),
	atMost("longest task in the life of an object, ms", "^Page/Life$", "longest-ms", 100),

	atMost("many environments, pipelines, Changes: page of 500, 99 %, ms", "^Scale/", "page-p99-ms", 200),
	atMost("the same, start until all environments have a prompt, s", "^Scale/", "caught-up-s", 60),

	atMost("change to pushed commit, median, ms", "^Mirror/EventToCommit/", "p50-ms", 100),
	atMost("change to pushed commit, 99 %, ms", "^Mirror/EventToCommit/", "p99-ms", 400),
	atMost("the median with more objects / with 200", "^Mirror/EventToCommit/", "p50/first", 1.3).accepting(4),
	atMost("the same with audit and reviews, first changes, median", "^Authored/EventToCommit/", "first-p50-ms", 100),
	atMost("the same with audit and reviews, first changes, 99 %", "^Authored/EventToCommit/", "first-p99-ms", 500),
	atMost("the same with audit and reviews, later changes, median", "^Authored/EventToCommit/", "p50-ms", 100),
	atMost("the same with audit and reviews, later changes, 99 %", "^Authored/EventToCommit/", "p99-ms", 500),
	atLeast("right authors of these changes, %", "^Authored/EventToCommit/", "right-%", 100).exactly(),
	atMost("seed of 10 000 ConfigMaps / kubectl get", "^Mirror/Seed/", "seed/get", 3),
	atMost("commits of a second run", "^Mirror/SecondRun/", "commits", 0).exactly(),
	atLeast("writes a second / without the server", "^Mirror/Sustained/", "writes/alone", 0.8).accepting(0.6),
	atLeast("changes a second, mirrored", "^Mirror/Sustained/", "mirrored/s", 1000).accepting(300),
	atMost("idle with 2000 objects, CPU ms in 10 s", "^Mirror/Idle/", "cpu-ms/10s", 20).accepting(60),
	atMost("idle with 2000 objects, resident MiB", "^Mirror/Idle/", "rss-MiB", 90).accepting(160),
	atMost("resident with the largest population, MiB", "^Mirror/Memory/", "rss-MiB", 300),

	atMost("kill of the leader until the next change is pushed, s", "^Replicas/.*/Kill$", "max-s", 10),
	atMost("stop of the leader until the next change is pushed, s", "^Replicas/.*/Stop$", "max-s", 2),

	atMost("seed of an empty branch / GitOps Reverser", "^Peers/Seed/", "seed-s/reverser", 1),
	atMost("burst until its changes are pushed / GitOps Reverser", "^Peers/Burst/", "settled-s/reverser", 1),
	atLeast("right authors of that burst, %", "^Peers/Burst/", "slipstream-right-%", 100).exactly(),
	atMost("change after a pause, median / GitOps Reverser", "^Peers/Change/", "p50-ms/reverser", 1),
	atMost("change right after another, median / GitOps Reverser", "^Peers/Change/", "next-p50-ms/reverser", 1),
	atMost("end of an outage until all is pushed / GitOps Reverser", "^Peers/Outage/", "settled-s/reverser", 1),
	atMost("lost changes of the burst and of the outage", "^Peers/(Burst|Outage)/", "slipstream-missing", 0).exactly(),
}

func atMost(what, benchmarks, unit string, limit float64) target {
	return target{what: what, benchmarks: regexp.MustCompile(benchmarks), unit: unit, limit: limit, accepted: limit * (1 + tolerance)}
}

func atLeast(what, benchmarks, unit string, limit float64) target {
	t := atMost(what, benchmarks, unit, limit)
	t.atLeast, t.accepted = true, limit*(1-tolerance)
	return t
}

// exactly returns a target of which nothing worse is accepted.
func (t target) exactly() target { return t.accepting(t.limit) }

// accepting returns a target that is known to be missed, up to a value.
func (t target) accepting(accepted float64) target {
	t.accepted = accepted
	return t
}

// within reports whether a value is not worse than a limit.
func (t target) within(limit, value float64) bool {
	if t.atLeast {
		return value >= limit
	}
	return value <= limit
}

// named is the beginning of a target's expression: the name of a benchmark, without those of its parts.
var named = regexp.MustCompile(`^\^(\w+)`)

// measuring returns the expression, as in go test, that matches the benchmarks that measure the targets.
func measuring(targets []target) string {
	names := sets.New[string]()
	for _, t := range targets {
		names.Insert(named.FindStringSubmatch(t.benchmarks.String())[1])
	}
	return "^Benchmark(" + strings.Join(sets.List(names), "|") + ")$"
}

// verdict is a target with its measured values.
type verdict struct {
	target
	// values is empty if none of the benchmarks ran.
	values []float64
}

// judge returns the measured values of each target.
func judge(results []result, targets []target) []verdict {
	verdicts := make([]verdict, len(targets))
	for i, t := range targets {
		verdicts[i].target = t
		for _, r := range results {
			if !t.benchmarks.MatchString(r.name) {
				continue
			}
			for _, m := range r.metrics {
				if m.unit == t.unit {
					verdicts[i].values = append(verdicts[i].values, m.value)
				}
			}
		}
	}
	return verdicts
}

// met reports whether all values are within the limit.
func (v verdict) met() bool { return v.allWithin(v.limit) }

// acceptable reports whether the check accepts all values.
func (v verdict) acceptable() bool { return v.allWithin(v.accepted) }

func (v verdict) allWithin(limit float64) bool {
	return !slices.ContainsFunc(v.values, func(value float64) bool { return !v.within(limit, value) })
}

// failed reports whether the check does not accept a value, or if everything was to be measured, whether a target was not.
func failed(verdicts []verdict, everything bool) bool {
	return slices.ContainsFunc(verdicts, func(v verdict) bool { return !v.acceptable() || everything && len(v.values) == 0 })
}
