// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import "time"

func attributionCases() []alertCase {
	const (
		audit   = `slipstream_audit_events_total{outcome="recorded"} `
		hits    = `slipstream_enrich_hits_total{controller="mirror",signal="audit"} `
		misses  = `slipstream_enrich_misses_total{controller="mirror"} `
		lag     = `slipstream_attribution_lag_seconds{controller="mirror",signal="audit"} `
		refused = `slipstream_attribution_refusals_total{endpoint="audit",reason="unauthorized"} `
	)
	return []alertCase{
		{
			name: "no audit events while objects change", alert: "SlipstreamAuditSilent",
			series: []string{audit + stopped, misses + steady}, fires: true,
		},
		{
			name: "no audit events while admission reports changes", alert: "SlipstreamAuditSilent",
			series: []string{audit + stopped, hits + steady}, fires: true,
		},
		{name: "audit events arrive", alert: "SlipstreamAuditSilent", series: []string{audit + steady, hits + steady}},
		{name: "no audit events and no changes", alert: "SlipstreamAuditSilent", series: []string{audit + stopped, hits + resting}},
		{name: "audit was never configured", alert: "SlipstreamAuditSilent", series: []string{misses + steady}},
		{name: "audit events are late", alert: "SlipstreamAuditLate", series: []string{lag + "30+0x30"}, fires: true},
		{name: "audit events are in time", alert: "SlipstreamAuditLate", series: []string{lag + "0.3+0x30"}},
		{name: "reports are rejected", alert: "SlipstreamReportsRefused", series: []string{refused + steady}, fires: true},
		{name: "no report is rejected", alert: "SlipstreamReportsRefused", series: []string{refused + resting}},
	}
}

func mirrorCases() []alertCase {
	const (
		oldest  = `slipstream_repo_branch_oldest_change_timestamp_seconds `
		fast    = `slipstream_change_push_duration_seconds_bucket{le="60"} `
		slow    = `slipstream_change_push_duration_seconds_bucket{le="120"} `
		all     = `slipstream_change_push_duration_seconds_bucket{le="+Inf"} `
		blocked = `slipstream_outbox_blocked `
		silence = `slipstream_watch_silence_seconds{controller="mirror"} `
	)
	return []alertCase{
		{name: "a remote is unavailable", alert: "SlipstreamPushFailing", series: []string{oldest + "60+0x30"}, fires: true},
		{name: "one of two replicas leads", alert: "SlipstreamPushFailing", series: []string{
			`slipstream_repo_branch_oldest_change_timestamp_seconds{pod="a"} 0+0x30`,
			`slipstream_repo_branch_oldest_change_timestamp_seconds{pod="b"} 60+0x30`,
		}, fires: true},
		{name: "pushes succeed", alert: "SlipstreamPushFailing", series: []string{oldest + "0+60x30"}},
		{name: "no change is pending", alert: "SlipstreamPushFailing", series: []string{oldest + "0+0x30"}},
		{name: "pushes are slow", alert: "SlipstreamPushSlow", series: []string{fast + "0+1x30", slow + "0+10x30", all + "0+10x30"}, fires: true},
		{name: "one push is slow", alert: "SlipstreamPushSlow", series: []string{fast + "0+99x30", slow + "0+100x30", all + "0+100x30"}},
		{name: "nothing is pushed", alert: "SlipstreamPushSlow", series: []string{fast + "1+0x30", slow + "9+0x30", all + "9+0x30"}},
		{name: "the outbox cannot be written", alert: "SlipstreamChangesNotKept", series: []string{blocked + "1+0x30"}, fires: true},
		{name: "the outbox can be written", alert: "SlipstreamChangesNotKept", series: []string{blocked + "0+0x30"}},
		{name: "a watch is silent", alert: "SlipstreamWatchSilent", series: []string{silence + "0+60x30"}, fires: true},
		{name: "a watch has bookmarks", alert: "SlipstreamWatchSilent", series: []string{silence + "50+0x30"}},
	}
}

func catalogCases() []alertCase {
	const (
		waiting     = `slipstream_catalog_intake_objects `
		capacity    = `slipstream_catalog_intake_capacity 10000+0x30`
		blocked     = `slipstream_catalog_intake_blocked `
		failures    = `slipstream_catalog_failures_total{reason="Transient"} `
		patches     = `slipstream_catalog_failures_total{reason="PatchFailed"} `
		applied     = `slipstream_catalog_records_total{state="AutoApplied"} `
		awaiting    = `slipstream_catalog_records_awaiting `
		unreachable = `slipstream_catalog_sources_unreachable `
		swept       = `slipstream_retention_sweeps_total{result="success"} `
		notSwept    = `slipstream_retention_sweeps_total{result="failure"} `
	)
	return []alertCase{
		{name: "the intake is filling", alert: "SlipstreamCatalogBacklog", series: []string{waiting + "7000+0x30", capacity}, fires: true},
		{name: "the intake has room", alert: "SlipstreamCatalogBacklog", series: []string{waiting + "6999+0x30", capacity}},
		{
			name: "no replica leads", alert: "SlipstreamCatalogBacklog",
			series: []string{waiting + "0+0x30", `slipstream_catalog_intake_capacity 0+0x30`},
		},
		{name: "a replica leads", alert: "SlipstreamCatalogBacklog", series: []string{
			`slipstream_catalog_intake_objects{pod="a"} 8000+0x30`, `slipstream_catalog_intake_capacity{pod="a"} 10000+0x30`,
			`slipstream_catalog_intake_objects{pod="b"} 0+0x30`, `slipstream_catalog_intake_capacity{pod="b"} 10000+0x30`,
		}, fires: true},
		{name: "changes cannot be stored", alert: "SlipstreamCatalogChangesNotKept", series: []string{blocked + "1+0x30"}, fires: true},
		{name: "changes can be stored", alert: "SlipstreamCatalogChangesNotKept", series: []string{blocked + "0+0x30"}},
		{
			name: "the source cannot be read", alert: "SlipstreamCatalogsFailing",
			series: []string{failures + "0+1x30", applied + resting}, fires: true,
		},
		{
			name: "half of the batches fail", alert: "SlipstreamCatalogsFailing", series: []string{failures + steady, applied + steady}, fires: true,
		},
		{name: "few of many batches fail", alert: "SlipstreamCatalogsFailing", series: []string{failures + "0+1x30", applied + steady}},
		{
			name: "one patch does not apply", alert: "SlipstreamCatalogsFailing",
			series: []string{patches + "0+0x14 1+1x4 5+0x11", applied + resting},
		},
		{name: "a record needs manual intervention", alert: "SlipstreamCatalogNeedsSomeone", series: []string{awaiting + "1+0x30"}, fires: true},
		{name: "no record needs manual intervention", alert: "SlipstreamCatalogNeedsSomeone", series: []string{awaiting + "0+0x30"}},
		{name: "a source is unreachable", alert: "SlipstreamCatalogSourceUnreachable", series: []string{unreachable + "1+0x30"}, fires: true},
		{name: "all sources are reachable", alert: "SlipstreamCatalogSourceUnreachable", series: []string{unreachable + "0+0x30"}},
		{
			name: "records cannot be archived", alert: "SlipstreamRetentionFailing",
			series: []string{notSwept + steady, swept + resting}, fires: true,
		},
		{name: "some sweeps fail", alert: "SlipstreamRetentionFailing", series: []string{notSwept + steady, swept + steady}},
		{name: "all sweeps succeed", alert: "SlipstreamRetentionFailing", series: []string{notSwept + "0+0x30", swept + steady}},
	}
}

func pipelineCases() []alertCase {
	const (
		oldest   = `slipstream_pipeline_oldest_pending_seconds{pipeline="inventory",sink="search"} `
		rejected = `slipstream_pipeline_rejected_objects{pipeline="inventory",sink="search"} `
	)
	return []alertCase{
		{name: "a sink is unavailable", alert: "SlipstreamPipelineSinkBehind", series: []string{oldest + "0+60x30"}, fires: true},
		{name: "a sink is slow", alert: "SlipstreamPipelineSinkBehind", series: []string{oldest + "600+0x30"}},
		{name: "one of two sinks is unavailable", alert: "SlipstreamPipelineSinkBehind", series: []string{
			oldest + "0+0x30", `slipstream_pipeline_oldest_pending_seconds{pipeline="inventory",sink="audit"} 1000+0x30`,
		}, fires: true},
		{name: "a sink rejects objects", alert: "SlipstreamPipelineObjectsRejected", series: []string{rejected + "2+0x30"}, fires: true},
		{name: "no object is rejected", alert: "SlipstreamPipelineObjectsRejected", series: []string{rejected + "0+0x30"}},
	}
}

func notificationCases() []alertCase {
	const (
		failures = `slipstream_notification_sink_failures{sink_namespace="shop",sink="slack"} `
		rejected = `slipstream_notification_messages_total{sink_namespace="shop",sink="slack",result="rejected"} `
		retried  = `slipstream_notification_messages_total{sink_namespace="shop",sink="slack",result="retry"} `
		pending  = `slipstream_notification_pending{sink_namespace="shop",sink="slack"} `
	)
	return []alertCase{
		{name: "messages fail", alert: "SlipstreamNotificationSinkFailing", series: []string{failures + "3+0x30"}, fires: true},
		{name: "a message is sent again", alert: "SlipstreamNotificationSinkFailing", series: []string{failures + "2+0x30"}},
		{name: "one of two sinks fails", alert: "SlipstreamNotificationSinkFailing", series: []string{
			failures + "0+0x30", `slipstream_notification_sink_failures{sink_namespace="teams",sink="slack"} 5+0x30`,
		}, fires: true},
		{name: "the first message is rejected", alert: "SlipstreamNotificationsRejected", series: []string{rejected + "0+0x20 1+0x9"}, fires: true},
		{name: "messages are sent again", alert: "SlipstreamNotificationsRejected", series: []string{rejected + "1+0x30", retried + steady}},
		{
			name: "notifications wait for more than a day", alert: "SlipstreamNotificationsWaiting", series: []string{pending + "1+1x30"},
			fires: true, step: time.Hour,
		},
		{
			name: "some are delivered each night", alert: "SlipstreamNotificationsWaiting", series: []string{pending + "1+1x20 2+1x9"},
			step: time.Hour,
		},
		{
			name: "none wait", alert: "SlipstreamNotificationsWaiting", series: []string{pending + "3+0x20 0+0x9"}, step: time.Hour,
		},
		{
			name: "the first ones wait", alert: "SlipstreamNotificationsWaiting", series: []string{pending + "0+0x20 1+1x9"}, step: time.Hour,
		},
		{
			name: "a new sink", alert: "SlipstreamNotificationsWaiting", series: []string{pending + "_x25 1+1x4"}, step: time.Hour,
		},
	}
}
