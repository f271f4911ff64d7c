// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
)

// follower prints the progress of a pipeline's run.
type follower struct {
	api client.ConfigbutlerV1alpha1Interface
	// name is that of the pipeline, id that of the run.
	name, id string
	progress cli.Progress
}

// untilFinished waits for the run to finish and returns its result, nil if another run has finished since.
func (f *follower) untilFinished(ctx context.Context) (finished *v1alpha1.PipelineRun, err error) {
	err = cli.Follow(ctx, f.api.SyncPipelines(), cli.SyncPipeline, f.name, &v1alpha1.SyncPipeline{},
		func(pipeline *v1alpha1.SyncPipeline) (over bool, err error) {
			finished, over = f.inspect(&pipeline.Status)
			return over, nil
		})
	return finished, err
}

// inspect says how far the run is, and finds it when it has ended. A run that is neither pending nor current has ended.
func (f *follower) inspect(status *v1alpha1.SyncPipelineStatus) (finished *v1alpha1.PipelineRun, over bool) {
	if last := status.LastRun; last != nil && last.ID == f.id {
		return last, true
	}
	if current := status.CurrentRun; current != nil && current.ID == f.id {
		f.progress.Say(howFar(current))
		return nil, false
	}
	waits := slices.ContainsFunc(status.PendingRequests, func(p v1alpha1.PendingPipelineRequest) bool { return p.ID == f.id })
	if waits {
		f.progress.Say("Waiting for the run before it")
	}
	return nil, !waits
}

// howFar formats progress, as in "Sent 120 of 10000: assistant 20 of 5000, index 100 of 5000".
func howFar(run *v1alpha1.PipelineRun) string {
	if run.Phase == v1alpha1.PipelineRunListing {
		return "Listing what there is"
	}
	var sinks []string
	for _, sink := range run.Sinks {
		part := fmt.Sprintf("%s %d of %d", sink.Name, sink.Done, sink.Total)
		if sink.Done < sink.Total && sink.Answer != "" {
			part += " (" + cli.Shorten(sink.Answer, 60) + ")"
		}
		sinks = append(sinks, part)
	}
	return fmt.Sprintf("Sent %d of %d: %s", run.Done, run.Total, strings.Join(sinks, ", "))
}
