// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import "time"

func environmentCases() []alertCase {
	const (
		failed    = `slipstream_environment_syncs_total{type="Environment",action="Catalog",trigger="automatic",state="Failed"} `
		completed = `slipstream_environment_syncs_total{type="Environment",action="All",trigger="requested",state="Completed"} `
		fast      = `slipstream_environment_sync_duration_seconds_bucket{le="120"} `
		slow      = `slipstream_environment_sync_duration_seconds_bucket{le="300"} `
		all       = `slipstream_environment_sync_duration_seconds_bucket{le="+Inf"} `
		awaiting  = `slipstream_environment_records_awaiting{state="Conflicted"} `
		waiting   = `slipstream_dependency_intake_objects `
		capacity  = `slipstream_dependency_intake_capacity 10000+0x30`
		blocked   = `slipstream_dependency_intake_blocked `
	)
	return []alertCase{
		{
			name: "half of the syncs fail", alert: "SlipstreamEnvironmentSyncsFailing",
			series: []string{failed + steady, completed + steady}, fires: true,
		},
		{name: "few of many syncs fail", alert: "SlipstreamEnvironmentSyncsFailing", series: []string{failed + "0+1x30", completed + steady}},
		{name: "one sync fails", alert: "SlipstreamEnvironmentSyncsFailing", series: []string{failed + "0+0x14 1+0x15", completed + resting}},
		{
			name: "syncs are slow", alert: "SlipstreamEnvironmentSyncsSlow",
			series: []string{fast + "0+1x30", slow + "0+9x30", all + "0+9x30"}, fires: true,
		},
		{name: "syncs are fast", alert: "SlipstreamEnvironmentSyncsSlow", series: []string{fast + "0+9x30", slow + "0+9x30", all + "0+9x30"}},
		{name: "an environment needs a decision", alert: "SlipstreamEnvironmentNeedsSomeone", series: []string{awaiting + "1+0x30"}, fires: true},
		{name: "no environment needs a decision", alert: "SlipstreamEnvironmentNeedsSomeone", series: []string{awaiting + "0+0x30"}},
		{
			name: "the intake of dependency changes is filling", alert: "SlipstreamDependencyBacklog",
			series: []string{waiting + "7000+0x30", capacity}, fires: true,
		},
		{
			name: "the intake of dependency changes has room", alert: "SlipstreamDependencyBacklog",
			series: []string{waiting + "6999+0x30", capacity},
		},
		{
			name: "dependency changes cannot be stored", alert: "SlipstreamDependencyChangesNotKept",
			series: []string{blocked + "1+0x30"}, fires: true,
		},
		{name: "dependency changes can be stored", alert: "SlipstreamDependencyChangesNotKept", series: []string{blocked + "0+0x30"}},
	}
}

func peopleCases() []alertCase {
	const (
		prompt     = `slipstream_environment_oldest_prompt_timestamp_seconds{about="catalog"} `
		dismissals = `slipstream_dismissals_total{about="catalog"} `
	)
	return []alertCase{
		{name: "a prompt is old", alert: "SlipstreamPromptsStale", series: []string{prompt + "3600+0x30"}, step: 12 * time.Hour, fires: true},
		{name: "a prompt is new", alert: "SlipstreamPromptsStale", series: []string{prompt + "3600+0x30"}, step: time.Hour},
		{name: "no prompt", alert: "SlipstreamPromptsStale", series: []string{prompt + "0+0x30"}, step: 12 * time.Hour},
		{
			name: "many prompts are dismissed at once", alert: "SlipstreamDismissalSpike",
			series: []string{dismissals + "0+0x25 15+15x4"}, step: 30 * time.Minute, fires: true,
		},
		{
			name: "the first prompts are dismissed", alert: "SlipstreamDismissalSpike",
			series: []string{dismissals + "0+0x22 5+5x7"}, step: 10 * time.Minute, fires: true,
		},
		{
			name: "as many prompts are dismissed as before", alert: "SlipstreamDismissalSpike",
			series: []string{dismissals + "0+15x30"}, step: 30 * time.Minute,
		},
		{
			name: "few prompts are dismissed", alert: "SlipstreamDismissalSpike",
			series: []string{dismissals + "0+0x25 1+1x4"}, step: 30 * time.Minute,
		},
	}
}
