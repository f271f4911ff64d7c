// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/apierror"
	"github.com/configbutler/slipstream/pkg/kube/diff"
	"github.com/configbutler/slipstream/pkg/kube/printable"
	"github.com/configbutler/slipstream/pkg/kube/restore"
)

// session has the clients of a command that reads the history of objects.
type session struct {
	genericiooptions.IOStreams
	config *genericclioptions.ConfigFlags
	// destination is the flag --destination.
	destination string

	namespace string
	api       client.ConfigbutlerV1alpha1Interface
	dynamic   dynamic.Interface
	mapper    meta.RESTMapper
	schemas   *diff.Schemas
}

// planner is that of all commands.
var planner = restore.Planner{Reasons: []string{v1alpha1.AnnotationReason, v1alpha1.AnnotationChangeCause}}

func (s *session) addDestinationFlag(command *cobra.Command) {
	command.Flags().StringVar(&s.destination, "destination", "",
		"The GitDestination that is read, as [NAMESPACE/]NAME. By default the one that the Changes name.")
}

// connect sets the clients.
func (s *session) connect() (err error) {
	if s.namespace, _, err = s.config.ToRawKubeConfigLoader().Namespace(); err != nil {
		return err
	}
	if s.api, err = cli.Connect(s.config); err != nil {
		return err
	}
	found, err := s.config.ToRESTConfig()
	if err != nil {
		return err
	}
	if s.dynamic, err = dynamic.NewForConfig(found); err != nil {
		return err
	}
	if s.mapper, err = s.config.ToRESTMapper(); err != nil {
		return err
	}
	discovery, err := s.config.ToDiscoveryClient()
	if err != nil {
		return err
	}
	s.schemas = diff.NewSchemas(openapi.ToClientWithContext(discovery.OpenAPIV3()), clock.RealClock{})
	return nil
}

// note prints a line for the user that is no output.
func (s *session) note(format string, args ...any) {
	_, _ = fmt.Fprintln(s.ErrOut, printable.Line(fmt.Sprintf(format, args...))) // Nothing depends on it.
}

// abbreviated matches the hash of a commit, or its first digits.
var abbreviated = regexp.MustCompile("^[0-9a-f]{7,64}$")

// change returns the Change that a user names: by its name, which may have its namespace before it, or by a commit.
func (s *session) change(ctx context.Context, argument string) (*v1alpha1.Change, error) {
	namespace, name, qualified := strings.Cut(argument, "/")
	if !qualified {
		namespace, name = s.namespace, argument
	}
	if !abbreviated.MatchString(name) {
		change, err := s.api.Changes(namespace).Get(ctx, name, metav1.GetOptions{})
		return change, s.notAChange(argument, err)
	}
	selector := fields.OneTermEqualSelector(v1alpha1.ChangeCommitField, name).String()
	found, err := s.api.Changes(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: logPage})
	switch {
	case err != nil:
		return nil, err
	case len(found.Items) == 0:
		return nil, fmt.Errorf("no Change of namespace %s is in a commit %s", namespace, name)
	case len(found.Items) == 1:
		return &found.Items[0], nil
	}
	printer := changePrinter{out: s.ErrOut, now: time.Now}
	if err := printer.print(found.Items); err != nil {
		return nil, err
	}
	return nil, fmt.Errorf("commit %s has the Changes above: give the name of one of them", name)
}

// notAChange adds to the error about a Change where its name is listed. In another namespace the user may be forbidden to look for it.
func (s *session) notAChange(argument string, err error) error {
	_, name, qualified := strings.Cut(argument, "/")
	isObject := qualified && !changeName.MatchString(name)
	if !apierror.IsAbsent(err) && (!isObject || !apierrors.IsForbidden(err)) {
		return err
	}
	if !isObject {
		return cli.Hinted(err, fmt.Sprintf("kubectl slipstream log -n %s lists Changes with their names", cli.Quoted(s.namespace)))
	}
	return cli.Hinted(err, fmt.Sprintf("%[1]s is not the name of a Change. If it is an object, kubectl slipstream log %[1]s -n %[2]s lists its "+
		"Changes with their names", cli.Quoted(argument), cli.Quoted(s.namespace)))
}

// history returns the Changes of an object, newest first, at most a number of them.
func (s *session) history(ctx context.Context, of objectRef, limit int) ([]v1alpha1.Change, error) {
	namespace := s.namespace
	if of.clusterScoped {
		namespace = metav1.NamespaceAll // Their Changes are in the namespace of the server, which is not known here.
	}
	var found []v1alpha1.Change
	options := metav1.ListOptions{FieldSelector: of.changes(nil), Limit: logPage}
	for {
		page, err := s.api.Changes(namespace).List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if change := &page.Items[i]; of.includes(change) && (change.Spec.Object.Namespace == "") == of.clusterScoped {
				found = append(found, *change)
			}
		}
		if options.Continue = page.Continue; options.Continue == "" || len(found) >= limit {
			return newest(found, limit), nil
		}
	}
}

// errNoDestination is returned if no Change names a destination.
var errNoDestination = errors.New("name a GitDestination with --destination")

// destinationOf returns the destination that is read for a selection at a point in time, as at returns it: that of the flag, or that of the
// Change that is named, or the only one that Changes of the objects or the namespace name.
func (s *session) destinationOf(ctx context.Context, sel *selection, at string) (only v1alpha1.NamespacedObjectReference, err error) {
	if s.destination != "" {
		namespace, name, qualified := strings.Cut(s.destination, "/")
		if !qualified {
			namespace, name = s.namespace, s.destination
		}
		return v1alpha1.NamespacedObjectReference{Namespace: namespace, Name: name}, nil
	}
	if strings.Contains(at, "/") {
		change, err := s.change(ctx, strings.TrimSuffix(at, "^"))
		if err != nil {
			return only, err
		}
		return onlyDestination("change "+change.Name, []v1alpha1.Change{*change})
	}
	if len(sel.objects) == 0 {
		changes, err := s.history(ctx, sel.kind, destinationChanges)
		if err != nil {
			return only, err
		}
		return onlyDestination("namespace "+s.namespace, changes)
	}
	var changes []v1alpha1.Change
	var names []string
	for _, of := range sel.objects {
		found, err := s.history(ctx, of, destinationChanges)
		if err != nil {
			return only, err
		}
		changes, names = append(changes, found...), append(names, of.String())
	}
	return onlyDestination(strings.Join(names, ", "), changes)
}

// destinationChanges is the number of Changes in which a destination is looked for.
const destinationChanges = 500

// onlyDestination returns the destination of all Changes of something. If there are several, it is an error.
func onlyDestination(of string, changes []v1alpha1.Change) (only v1alpha1.NamespacedObjectReference, err error) {
	var names []string
	for i := range changes {
		for _, commit := range changes[i].Spec.Commits {
			only = commit.DestinationRef
			if name := only.Namespace + "/" + only.Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	switch len(names) {
	case 0:
		return only, fmt.Errorf("no Change of %s has a commit: %w", of, errNoDestination)
	case 1:
		return only, nil
	}
	slices.Sort(names)
	return only, fmt.Errorf("several GitDestinations have commits of %s: give --destination %s", of, strings.Join(names, " or --destination "))
}
