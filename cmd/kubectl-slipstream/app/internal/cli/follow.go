// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// Objects lists and watches objects of a type in lists of the type L, as the generated clients do.
type Objects[L runtime.Object] interface {
	List(ctx context.Context, options metav1.ListOptions) (L, error)
	Watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// Follow calls seen with an object as it is now and after each change, across restarts of the server, until seen reports that it has seen
// enough. It returns NotFound if the object does not exist or is deleted, and the cause of ctx when ctx ends.
func Follow[T runtime.Object, L runtime.Object](
	ctx context.Context, objects Objects[L], kind Kind, name string, example T, seen func(T) (enough bool, err error),
) error {
	notFound := apierrors.NewNotFound(v1alpha1.Resource(kind.Resource), name)
	exists := func(store cache.Store) (bool, error) {
		if len(store.ListKeys()) == 0 {
			return false, notFound
		}
		return false, nil
	}
	one := oneOf(objects, name)
	if _, err := one.ListWithContext(ctx, metav1.ListOptions{}); err != nil {
		return err // UntilWithSync repeats what fails.
	}
	_, err := watchtools.UntilWithSync(ctx, one, example, exists, func(event watch.Event) (bool, error) {
		object, ok := event.Object.(T)
		if !ok {
			return false, nil
		}
		if event.Type == watch.Deleted {
			return false, notFound
		}
		return seen(object)
	})
	if ctx.Err() != nil {
		return context.Cause(ctx) // The error of the wait says neither whether time was up nor who ended it.
	}
	return err
}

// oneOf lists and watches one object.
func oneOf[L runtime.Object](objects Objects[L], name string) *cache.ListWatch {
	only := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			// A cached list can be older than a request, which would seem to be over then.
			options.FieldSelector, options.ResourceVersion, options.ResourceVersionMatch = only, "", ""
			return objects.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.FieldSelector = only
			return objects.Watch(ctx, options)
		},
	}
}

// Progress prints how far something is.
type Progress struct {
	// Out is where lines are printed, each after Prefix.
	Out    io.Writer
	Prefix string
	// Notice is printed once, before the first line, unless it is empty.
	Notice string

	said   string
	saidAt time.Time
}

// Say prints a line unless it has been printed, or another one has within ProgressInterval.
func (p *Progress) Say(line string) {
	if now := time.Now(); line != "" && line != p.said && now.Sub(p.saidAt) >= ProgressInterval {
		if p.Notice != "" {
			_, _ = fmt.Fprintln(p.Out, p.Notice) // Nothing depends on it.
			p.Notice = ""
		}
		p.said, p.saidAt = line, now
		_, _ = fmt.Fprintln(p.Out, printable.Line(p.Prefix+line)) // Nothing depends on it.
	}
}

// WaitNotice returns the line that is printed before a wait for something that continues without the plugin, such as the sync. It says how
// to end the wait.
func WaitNotice(what string, timeout time.Duration) string {
	if timeout > 0 {
		return fmt.Sprintf("%s%s has ended, for at most %s%s%s continues", waitsUntil, what, timeout, endsWait, what)
	}
	return fmt.Sprintf("%s%s has ended%s%s continues; --timeout limits the wait", waitsUntil, what, endsWait, what)
}

// The parts of a WaitNotice by which IsWaitNotice finds it.
const waitsUntil, endsWait = "Waiting until the ", ". Ctrl-C ends the wait, and the "

// IsWaitNotice reports whether a line is a WaitNotice, which only makes sense on a terminal.
func IsWaitNotice(line string) bool {
	return strings.HasPrefix(line, waitsUntil) && strings.Contains(line, endsWait)
}
