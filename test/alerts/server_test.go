// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

func apiCases() []alertCase {
	const (
		unavailable = `aggregator_unavailable_apiservice{name="v1alpha1.configbutler.ai"} `
		other       = `aggregator_unavailable_apiservice{name="v1beta1.metrics.k8s.io"} `
		leads       = `leader_election_master_status{name="slipstream",pod="a"} `
		waits       = `leader_election_master_status{name="slipstream",pod="b"} 0+0x30`
		since       = `slipstream_serving_certificate_not_before_timestamp_seconds `
		until       = `slipstream_serving_certificate_expiration_timestamp_seconds `
		authority   = `slipstream_serving_authority_expiration_timestamp_seconds `
		failures    = `slipstream_serving_bundle_failures_total `
		definitions = `slipstream_serving_unregistered{reason="custom_resources"} `
		absent      = `slipstream_serving_unregistered{reason="absent"} `
	)
	return []alertCase{
		{name: "the API is unavailable", alert: "SlipstreamAPIUnavailable", series: []string{unavailable + "1+0x30"}, fires: true},
		{name: "another API is unavailable", alert: "SlipstreamAPIUnavailable", series: []string{unavailable + "0+0x30", other + "1+0x30"}},
		{
			name: "custom resource definitions own the group", alert: "SlipstreamNotRegistered",
			series: []string{definitions + "1+0x30", absent + "0+0x30"}, fires: true,
		},
		{name: "the server is registered", alert: "SlipstreamNotRegistered", series: []string{definitions + "0+0x30", absent + "0+0x30"}},
		{name: "no replica leads", alert: "SlipstreamNoLeader", series: []string{leads + "0+0x30", waits}, fires: true},
		{name: "a replica leads", alert: "SlipstreamNoLeader", series: []string{leads + "1+0x30", waits}},
		// The rules are evaluated after 28 minutes, or 1680 seconds.
		{
			name: "a certificate for an hour expires in less than ten minutes", alert: "SlipstreamCertificateNearExpiry",
			series: []string{since + "-1320+0x30", until + "2280+0x30"}, fires: true,
		},
		{
			name:  "a certificate for an hour expires in half an hour",
			alert: "SlipstreamCertificateNearExpiry", series: []string{since + "0+0x30", until + "3600+0x30"},
		},
		{
			name: "a certificate for 90 days expires in 20 days", alert: "SlipstreamCertificateNearExpiry",
			series: []string{since + "-6046320+0x30", until + "1729680+0x30"}, fires: true,
		},
		{
			name: "a certificate has expired", alert: "SlipstreamCertificateNearExpiry",
			series: []string{since + "-3000+0x30", until + "600+0x30"}, fires: true,
		},
		{name: "no certificate to renew", alert: "SlipstreamCertificateNearExpiry", series: []string{since + "0+0x30", until + "0+0x30"}},
		{
			name: "the authority expires in ten days", alert: "SlipstreamAuthorityNearExpiry",
			series: []string{authority + "864000+0x30"}, fires: true,
		},
		{name: "the authority expires in a month", alert: "SlipstreamAuthorityNearExpiry", series: []string{authority + "2592000+0x30"}},
		{name: "no authority to renew", alert: "SlipstreamAuthorityNearExpiry", series: []string{authority + "0+0x30"}},
		{name: "the bundle cannot be written", alert: "SlipstreamBundleNotUpdated", series: []string{failures + "0+1x30"}, fires: true},
		{name: "one write of the bundle failed", alert: "SlipstreamBundleNotUpdated", series: []string{failures + "0+0x20 1+0x9"}},
	}
}

func storeCases() []alertCase {
	const (
		size       = `slipstream_storage_volume_size_bytes{store="api"} 100+0x30`
		workSize   = `slipstream_storage_volume_size_bytes{store="work"} 100+0x30`
		left       = `slipstream_storage_volume_free_bytes{store="api"} `
		workLeft   = `slipstream_storage_volume_free_bytes{store="work"} `
		free       = `slipstream_storage_free_bytes{store="api"} `
		workFree   = `slipstream_storage_free_bytes{store="work"} `
		failures   = `slipstream_storage_write_failures_total{store="api",reason="disk_full"} `
		unreadable = `slipstream_store_unreadable_records{resource="gitdestinations"} `
	)
	return []alertCase{
		{name: "the volume is nearly full", alert: "SlipstreamStoreNearlyFull", series: []string{
			size, workSize, left + "10+0x30", workLeft + "10+0x30", free + "1+0x30", workFree + "1+0x30",
		}, fires: true},
		{name: "the volume is full, but its files have free pages", alert: "SlipstreamStoreNearlyFull", series: []string{
			size, workSize, left + "10+0x30", workLeft + "10+0x30", free + "20+0x30", workFree + "1+0x30",
		}},
		{name: "the volume has room", alert: "SlipstreamStoreNearlyFull", series: []string{
			size, workSize, left + "50+0x30", workLeft + "50+0x30", free + "0+0x30", workFree + "0+0x30",
		}},
		{name: "writes fail", alert: "SlipstreamStoreWritesFail", series: []string{failures + steady}, fires: true},
		{name: "writes succeed", alert: "SlipstreamStoreWritesFail", series: []string{failures + resting}},
		{name: "a record cannot be read", alert: "SlipstreamStoreUnreadable", series: []string{unreadable + "1+0x30"}, fires: true},
		{name: "all records can be read again", alert: "SlipstreamStoreUnreadable", series: []string{unreadable + "0+0x30"}},
	}
}
