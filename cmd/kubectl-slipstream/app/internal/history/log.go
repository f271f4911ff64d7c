// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

const logExample = `  # What has changed in the namespace shop within a day
  kubectl slipstream log -n shop

  # Who has changed a Deployment, within a month
  kubectl slipstream log deployment/web -n shop --since 720h

  # What jane has changed in the cluster, and what jane changes from now on
  kubectl slipstream log -A --author jane@example.com -w`

// watchPause is the time between two watches. A server ends each after some time.
const watchPause = time.Second

// logPage is the number of Changes that are read at once.
const logPage = 500

// changeLog is the command log.
type changeLog struct {
	genericiooptions.IOStreams
	config        *genericclioptions.ConfigFlags
	allNamespaces bool
	since         time.Duration
	// until is the time of the newest change that is listed, zero for now.
	until   time.Time
	author  string
	bypass  bool
	limit   int
	watch   bool
	oneline bool
	patch   bool

	printer changePrinter
	// seen is set once a change of what the user asks about was read, also an older one.
	seen bool
}

func newLog(streams genericiooptions.IOStreams, config *genericclioptions.ConfigFlags) *cobra.Command {
	l := &changeLog{IOStreams: streams, config: config}
	var since string
	command := &cobra.Command{
		Use:   "log [TYPE[/NAME] | TYPE NAME]",
		Short: "List what changed, who changed it, and the commits, newest first",
		Long: "List the changes of mirrored objects, newest first: of a namespace, of a type, or of one object. You see the changes of\n" +
			"objects that you may get.",
		Example: logExample,
		Args:    cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) (err error) {
			if l.since, err = sinceOf(since, time.Now()); err != nil {
				return err
			}
			return l.otherUser(l.run(command.Context(), args))
		},
	}
	flags := command.Flags()
	flags.BoolVarP(&l.allNamespaces, "all-namespaces", "A", false, "List the changes of all namespaces.")
	flags.StringVar(&since, "since", "24h",
		"How far to go back, such as 90m or 7d, or a time such as 2026-07-03T08:00:00Z. 0 means as far as changes are kept.")
	flags.StringVar(&l.author, "author", "", "List only the changes of this user.")
	flags.BoolVar(&l.bypass, "bypass", false, "List only the changes that bypassed what manages the object, such as Flux, Argo CD or Helm.")
	flags.IntVar(&l.limit, "limit", 0, "Maximum number of changes that are listed. 0 means all.")
	flags.BoolVarP(&l.watch, "watch", "w", false, "After the list, print changes as they are pushed, until Ctrl-C.")
	flags.BoolVar(&l.oneline, "oneline", false, "Print a line without columns for each change, as git log --oneline does.")
	flags.BoolVarP(&l.patch, "patch", "p", false, "Print each change as show does, with its diff. The contents are read from Git, one after the other.")
	command.MarkFlagsMutuallyExclusive("oneline", "patch")
	return command
}

func (l *changeLog) run(ctx context.Context, args []string) error {
	if l.limit < 0 {
		return fmt.Errorf("--limit is %d: it is at least 0", l.limit)
	}
	of, err := objectArgument(l.config, args)
	if err != nil {
		return err
	}
	if of.clusterScoped {
		l.allNamespaces = true // Their changes are in the namespace of the server, which is not known here.
	}
	namespace, err := l.namespace()
	if err != nil {
		return err
	}
	api, err := cli.Connect(l.config)
	if err != nil {
		return err
	}
	l.printer = changePrinter{out: l.Out, oneline: l.oneline, namespaces: l.allNamespaces, now: time.Now}
	if l.patch {
		l.printer.patch = func(change *v1alpha1.Change) error { return printPatch(ctx, api, l.Out, change) }
	}
	found, version, err := l.list(ctx, api.Changes(namespace), of, l.limit)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		if text := l.nothing(ctx, api.Changes(namespace), namespace, of); text != "" {
			_, _ = fmt.Fprintln(l.ErrOut, printable.Text(text)) // Nothing depends on it.
		}
	}
	if len(found) > 0 {
		err = l.printer.print(found)
	}
	if err != nil || !l.watch {
		return err
	}
	return l.follow(ctx, api.Changes(namespace), of, version)
}

// namespace returns the namespace of the changes; empty for all.
func (l *changeLog) namespace() (string, error) {
	if l.allNamespaces {
		return metav1.NamespaceAll, nil
	}
	namespace, _, err := l.config.ToRawKubeConfigLoader().Namespace()
	return namespace, err
}

// sinceOf parses the flag --since: a duration, a time, or 0.
func sinceOf(text string, now time.Time) (time.Duration, error) {
	if at, err := time.Parse(time.RFC3339, text); err == nil && at.Before(now) {
		return now.Sub(at), nil
	}
	if age, err := cli.ParseDuration(text); err == nil && age >= 0 {
		return age, nil
	}
	return 0, fmt.Errorf("--since is %q: it is a duration such as 90m or 7d, an earlier time such as %s, or 0", text, now.UTC().Format(time.RFC3339))
}

// otherUser adds to the error about a user of kubectl, which the flag --user chooses, that another flag is about authors.
func (l *changeLog) otherUser(err error) error {
	if err == nil || l.config.AuthInfoName == nil || *l.config.AuthInfoName == "" || !strings.Contains(err.Error(), "auth info ") {
		return err
	}
	return cli.Hinted(err, "--user is a flag of kubectl, for a user of the kubeconfig. The changes of a user: kubectl slipstream log --author "+
		cli.Quoted(*l.config.AuthInfoName))
}

// nothing says why the list is empty, and where else to look: the changes of a namespace outlive it, also those of the namespace itself. While
// changes are awaited, it only says what does not exist.
func (l *changeLog) nothing(ctx context.Context, changes client.ChangeInterface, namespace string, of objectRef) string {
	if !l.seen {
		if text := l.absent(ctx, changes, namespace, of); text != "" {
			return text
		}
	}
	if l.watch {
		return ""
	}
	text := "No changes found in namespace " + namespace
	if namespace == metav1.NamespaceAll {
		text = "No changes found in any namespace"
	}
	if l.since > 0 {
		text += " within " + duration.HumanDuration(l.since) + ". --since goes back further"
	}
	if namespace != metav1.NamespaceAll && of.resource.Empty() {
		text += "\nWho created or deleted the namespace itself: kubectl slipstream log " + cli.Quoted("namespace/"+namespace)
	}
	return text
}

// selector returns the field selector for the changes of an object.
func (l *changeLog) selector(of objectRef) string {
	terms := map[string]string{v1alpha1.ChangeAuthorField: l.author}
	if l.bypass {
		terms[v1alpha1.ChangeBypassField] = "true"
	}
	return of.changes(terms)
}

// list returns the changes, newest first, and the resourceVersion from which a watch continues.
func (l *changeLog) list(
	ctx context.Context, changes client.ChangeInterface, of objectRef, limit int,
) (found []v1alpha1.Change, version string, err error) {
	oldest := time.Time{}
	if l.since > 0 {
		oldest = time.Now().Add(-l.since)
	}
	options := metav1.ListOptions{FieldSelector: l.selector(of), Limit: logPage}
	for {
		page, err := changes.List(ctx, options)
		if err != nil {
			return nil, "", err
		}
		if version == "" {
			version = page.ResourceVersion // What comes while later pages are read is watched.
		}
		for i := range page.Items {
			change := &page.Items[i]
			if !of.includes(change) {
				continue
			}
			if l.seen = true; l.within(change, oldest) {
				found = append(found, *change)
			}
		}
		// All further changes are older.
		enough := limit > 0 && len(found) >= limit || endsBefore(page.Items, oldest)
		if options.Continue = page.Continue; options.Continue == "" || enough {
			break
		}
	}
	if limit == 0 {
		limit = len(found)
	}
	return newest(found, limit), version, nil
}

// within reports whether a change was made after a time, and not after until.
func (l *changeLog) within(change *v1alpha1.Change, oldest time.Time) bool {
	return change.Spec.Time.After(oldest) && (l.until.IsZero() || !change.Spec.Time.After(l.until))
}

// newest sorts changes, newest first, and returns at most a number of them.
func newest(changes []v1alpha1.Change, limit int) []v1alpha1.Change {
	slices.SortStableFunc(changes, func(a, b v1alpha1.Change) int { return b.Spec.Time.Compare(a.Spec.Time.Time) })
	return changes[:min(limit, len(changes))]
}

// endsBefore reports whether the last of some changes, newest first, is from before a time.
func endsBefore(changes []v1alpha1.Change, oldest time.Time) bool {
	return len(changes) > 0 && changes[len(changes)-1].Spec.Time.Before(&metav1.MicroTime{Time: oldest})
}

// follow prints changes as they are recorded until ctx ends. If the server does not have the events since the last one any more, because
// nothing has changed for long, it lists the changes since then.
func (l *changeLog) follow(ctx context.Context, changes client.ChangeInterface, of objectRef, version string) error {
	for {
		next, err := l.printEvents(ctx, changes, of, version)
		switch {
		case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
			if version, err = l.printNewer(ctx, changes, of, next); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			version = next
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// printNewer prints the changes that were recorded after a resourceVersion, oldest first, and returns the current one.
func (l *changeLog) printNewer(
	ctx context.Context, changes client.ChangeInterface, of objectRef, version string,
) (current string, err error) {
	found, current, err := l.list(ctx, changes, of, 0)
	if err != nil {
		return "", err
	}
	found = slices.DeleteFunc(found, func(change v1alpha1.Change) bool {
		order, err := resourceversion.CompareResourceVersion(change.ResourceVersion, version)
		return err == nil && order <= 0 || l.printer.printed(&change)
	})
	slices.Reverse(found)
	return current, l.printer.print(found)
}

// printEvents prints changes until the server ends the watch. It returns the resourceVersion to continue from, also with an error.
func (l *changeLog) printEvents(ctx context.Context, changes client.ChangeInterface, of objectRef, version string) (string, error) {
	events, err := changes.Watch(ctx, metav1.ListOptions{FieldSelector: l.selector(of), ResourceVersion: version, AllowWatchBookmarks: true})
	if err != nil {
		return version, err
	}
	err = cli.EachEvent(ctx, events, func(event watch.Event) error {
		change, ok := event.Object.(*v1alpha1.Change)
		if !ok {
			return apierrors.FromObject(event.Object)
		}
		version = change.ResourceVersion
		if event.Type != watch.Added || !of.includes(change) {
			return nil // A change that is in a commit of another destination, too, was printed before.
		}
		return l.printer.print([]v1alpha1.Change{*change})
	})
	return version, err
}
