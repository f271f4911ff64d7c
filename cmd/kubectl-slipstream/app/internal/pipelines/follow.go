// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package pipelines

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/syncstatus/summary"
)

// follower prints the progress of a pipeline's run.
type follower struct {
	api client.ConfigbutlerV1alpha1Interface
	// name is that of the pipeline, id that of the run.
	name, id string
	out      io.Writer

	said   string
	saidAt time.Time
}

// untilFinished waits for the run to finish and returns its result, nil if another run has finished since.
func (f *follower) untilFinished(ctx context.Context) (*v1alpha1.PipelineRun, error) {
	var finished *v1alpha1.PipelineRun
	_, err := watchtools.UntilWithSync(ctx, f.listWatch(), &v1alpha1.SyncPipeline{}, nil, func(event watch.Event) (bool, error) {
		pipeline, ok := event.Object.(*v1alpha1.SyncPipeline)
		if !ok {
			return false, nil
		}
		if event.Type == watch.Deleted {
			return false, apierrors.NewNotFound(v1alpha1.Resource("syncpipelines"), f.name)
		}
		var over bool
		finished, over = f.look(&pipeline.Status)
		return over, nil
	})
	if ctx.Err() != nil {
		err = context.Cause(ctx) // The error of the wait says neither whether time was up nor who ended it.
	}
	return finished, err
}

// listWatch watches one pipeline across restarts of the server.
func (f *follower) listWatch() cache.ListerWatcher {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, f.name).String()
	pipelines := f.api.SyncPipelines()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			// A cached list can be older than the request, in which case its run would seem to be over.
			options.FieldSelector, options.ResourceVersion, options.ResourceVersionMatch = only, "", ""
			return pipelines.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return pipelines.Watch(ctx, options)
		},
	}
}

// look says how far the run is, and finds it when it is over. A run that is neither asked for nor going on is over.
func (f *follower) look(status *v1alpha1.SyncPipelineStatus) (finished *v1alpha1.PipelineRun, over bool) {
	if last := status.LastRun; last != nil && last.ID == f.id {
		return last, true
	}
	if current := status.CurrentRun; current != nil && current.ID == f.id {
		f.say(howFar(current))
		return nil, false
	}
	waits := slices.ContainsFunc(status.PendingRequests, func(p v1alpha1.PendingPipelineRequest) bool { return p.ID == f.id })
	if waits {
		f.say("Waiting for the run before it")
	}
	return nil, !waits
}

// say prints a line unless it has been said, or something has just been.
func (f *follower) say(line string) {
	if now := time.Now(); line != f.said && now.Sub(f.saidAt) >= cli.ProgressInterval {
		f.said, f.saidAt = line, now
		_, _ = fmt.Fprintln(f.out, printable.Line(line)) // Nothing depends on it.
	}
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
			part += " (" + summary.Cut(sink.Answer, 60) + ")"
		}
		sinks = append(sinks, part)
	}
	return fmt.Sprintf("Sent %d of %d: %s", run.Done, run.Total, strings.Join(sinks, ", "))
}
