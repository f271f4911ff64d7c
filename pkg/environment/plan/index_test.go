// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package plan_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/environment/plan"
)

// rows returns a line for each record of an index.
func rows(index []v1alpha1.EnvironmentDependencyRecord, now metav1.Time) []string {
	var out []string
	for _, row := range index {
		line := string(row.Type) + " " + row.Source.Name
		for _, by := range row.ReferredBy {
			line += " <" + by.Kind + " " + by.Name
		}
		for _, word := range []struct {
			text  string
			holds bool
		}{{"optional", row.Optional}, {"missing", row.Missing}, {"unhashed", row.Hash == ""}, {"old", !row.LastDiscoveredAt.Equal(&now)}} {
			if word.holds {
				line += " " + word.text
			}
		}
		out = append(out, line)
	}
	return out
}

func TestIndex(t *testing.T) {
	const (
		app, reports, data = "ConfigMap app-config <Deployment web", "ConfigMap report-config <CronJob report", "Secret database <Deployment web"
		extra              = "ConfigMap extra <Deployment web optional missing unhashed"
		services           = "Service web <Deployment web <Ingress web"
	)
	tests := map[string]struct {
		do   func(s *fixture)
		want []string
	}{
		"all": {do: func(*fixture) {}, want: []string{app, extra, reports, data, services}},
		"nothing refers to it any more": {
			do: func(s *fixture) { s.drop("CronJob", "report") }, want: []string{app, extra, data, services},
		},
		"a deleted source": {
			do: func(s *fixture) { s.drop("ConfigMap", "app-config") }, want: []string{app + " missing", extra, reports, data, services},
		},
		"a deleted source, by the index": {
			do: func(s *fixture) {
				s.Action = v1alpha1.SyncActionCluster
				s.drop("Secret", "database")
			},
			want: []string{app, extra, reports, data + " missing", services},
		},
		"some workloads": {
			do: func(s *fixture) {
				s.Only = []v1alpha1.WorkloadReference{{Kind: "CronJob", Name: "report"}}
				s.put(replaced(t, report, "report-config", "app-config"))
			},
			want: []string{"ConfigMap app-config <CronJob report <Deployment web", extra + " old", data + " old", services + " old"},
		},
		"some workloads, by the index": {
			do: func(s *fixture) {
				s.Action, s.Only = v1alpha1.SyncActionCluster, []v1alpha1.WorkloadReference{{Kind: "Deployment", Name: "web"}}
			},
			want: []string{app, extra, reports + " old", data, services},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := shop(t)
			s.t, s.Now = t, metav1.NewTime(time.Unix(1000, 0))
			test.do(s)
			if diff := cmp.Diff(test.want, rows(s.plan().Index, s.Now)); diff != "" {
				t.Errorf("want -, got +:\n%s", diff)
			}
		})
	}
}

// TestSeenVersions checks that a plan clears the hashes of newer versions when it copies these.
func TestSeenVersions(t *testing.T) {
	for _, action := range []v1alpha1.SyncAction{v1alpha1.SyncActionAll, v1alpha1.SyncActionCatalog, v1alpha1.SyncActionCluster} {
		for _, only := range [][]v1alpha1.WorkloadReference{nil, {{Kind: "CronJob", Name: "report"}}} {
			s := shop(t)
			s.Action, s.Only, s.Now = action, only, metav1.NewTime(time.Unix(1000, 0))
			for i := range s.Index {
				s.Index[i].SeenHash = "2"
			}
			for _, record := range s.plan().Index {
				if planned := record.LastDiscoveredAt.Equal(&s.Now); planned == (record.SeenHash == "2") {
					t.Errorf("%s %v: %s is planned: %v, seen hash = %q", action, only, record.Source.Name, planned, record.SeenHash)
				}
			}
		}
	}
}

// TestOptional creates an optional ConfigMap after the first sync.
func TestOptional(t *testing.T) {
	s := shop(t)
	row := s.Index[1]
	if row.Source.Name != "extra" || !row.Optional || !row.Missing || row.Hash != "" {
		t.Errorf("record before the ConfigMap exists: %+v", row)
	}
	s.Action = v1alpha1.SyncActionCluster
	s.add(replaced(t, appConfig, "app-config", "extra"))
	if got := lines(s.sync()); len(got) != 1 || got[0] != "create ConfigMap extra: the environment's workloads need it" {
		t.Errorf("steps = %q", got)
	}
	if row = s.Index[1]; row.Missing || row.Hash == "" || len(row.Keys) != 1 {
		t.Errorf("record of the copy: %+v", row)
	}
	s.drop("ConfigMap", "extra")
	p := s.sync()
	if len(p.Missing) > 0 || s.target.objects[plan.KeyOf(replaced(t, appConfig, "app-config", "extra"))] == nil {
		t.Errorf("missing = %v", p.Missing)
	}
}

func TestHash(t *testing.T) {
	hash := func(text string) string {
		t.Helper()
		sum, err := plan.Hash(planner.Hasher, object(t, text))
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	runtime := strings.Replace(database, "metadata: {", "metadata: {resourceVersion: '8', uid: x, managedFields: [], ", 1)
	if hash(database) != hash(runtime) {
		t.Error("fields that the cluster writes change the hash")
	}
	if hash(database) == hash(strings.Replace(database, "aHVudGVyMg==", "c3dvcmRmaXNo", 1)) {
		t.Error("value does not change the hash")
	}
	if _, err := plan.Hash(planner.Hasher, object(t, "{metadata: {name: x}}")); err == nil {
		t.Error("object without a kind has a hash")
	}
}
