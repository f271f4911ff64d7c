// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"strings"
	"testing"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

func TestParseWorkload(t *testing.T) {
	for argument, want := range map[string]v1alpha1.WorkloadKind{
		"deployment/web": v1alpha1.WorkloadDeployment, "Deployments/web": v1alpha1.WorkloadDeployment, "deploy/web": v1alpha1.WorkloadDeployment,
		"sts/web": v1alpha1.WorkloadStatefulSet, "daemonset/web": v1alpha1.WorkloadDaemonSet, "rs/web": v1alpha1.WorkloadReplicaSet,
		"cj/web": v1alpha1.WorkloadCronJob, "cronjobs.batch/web": v1alpha1.WorkloadCronJob, "job/web": v1alpha1.WorkloadJob,
		"deployments.apps/web": v1alpha1.WorkloadDeployment,
		"web":                  "", "deployment": "", "deployment/": "", "pod/web": "", "deployment.batch/web": "", "/web": "",
	} {
		got, err := cli.ParseWorkload(argument)
		if got.Kind != want || (err == nil) != (want != "") || err == nil && got.Name != "web" ||
			err != nil && !strings.Contains(err.Error(), "is no workload: write KIND/NAME with cronjob, daemonset, deployment, job, ") {
			t.Errorf("%s: %v, %v", argument, got, err)
		}
	}
}
