// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/metadata"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/apierror"
)

// maxSimilar is the number of objects among which a similar name is looked for.
const maxSimilar = 500

// absent says that neither what the user asks about nor a change of it exists, with similar names. It is empty if one of both exists, or if
// that is not known.
func (l *changeLog) absent(ctx context.Context, changes client.ChangeInterface, namespace string, of objectRef) string {
	if of.name != "" {
		in, known := l.objects(of, namespace)
		if !known || !isAbsent(ctx, in, of.name, namespace == metav1.NamespaceAll && !of.clusterScoped) || isRecorded(ctx, changes, of) {
			return ""
		}
		where := " in the namespace " + namespace
		if namespace == metav1.NamespaceAll {
			where = ""
		} else if text := l.absent(ctx, changes, namespace, objectRef{}); text != "" {
			return text
		}
		return hinted(ctx, fmt.Sprintf("Neither %s nor a change of it exists%s", of, where), in, of.name)
	}
	if namespace == metav1.NamespaceAll {
		return ""
	}
	in, known := l.objects(objectRef{resource: corev1.Resource("namespaces"), clusterScoped: true}, "")
	if !known || !isAbsent(ctx, in, namespace, false) || isRecorded(ctx, changes, objectRef{}) {
		return ""
	}
	return hinted(ctx, fmt.Sprintf("Neither the namespace %s nor a change in it exists", namespace), in, namespace)
}

// objects returns the client for objects of a type, and whether the type is served.
func (l *changeLog) objects(of objectRef, namespace string) (metadata.ResourceInterface, bool) {
	config, err := l.config.ToRESTConfig()
	if err != nil {
		return nil, false
	}
	mapper, err := l.config.ToRESTMapper()
	if err != nil {
		return nil, false
	}
	resource, err := mapper.ResourceFor(of.resource.WithVersion(""))
	if err != nil {
		return nil, false
	}
	all, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, false
	}
	if of.clusterScoped {
		namespace = metav1.NamespaceAll
	}
	return all.Resource(resource).Namespace(namespace), true
}

// isAbsent reports whether an object does not exist, in no namespace if everywhere is set. What the user may not read is taken to exist.
func isAbsent(ctx context.Context, in metadata.ResourceInterface, name string, everywhere bool) bool {
	if everywhere {
		list, err := in.List(ctx, metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, name).String(), Limit: 1})
		return err == nil && len(list.Items) == 0
	}
	_, err := in.Get(ctx, name, metav1.GetOptions{})
	return apierror.IsAbsent(err)
}

// isRecorded reports whether there is a change of an object, or any change if none is named. If that is not known, it is taken to be so.
func isRecorded(ctx context.Context, changes client.ChangeInterface, of objectRef) bool {
	options := metav1.ListOptions{FieldSelector: of.changes(nil), Limit: logPage}
	for {
		page, err := changes.List(ctx, options)
		if err != nil || slices.ContainsFunc(page.Items, func(change v1alpha1.Change) bool { return of.includes(&change) }) {
			return true
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return false
		}
	}
}

// hinted adds the names that are similar to one that does not exist.
func hinted(ctx context.Context, text string, in metadata.ResourceInterface, name string) string {
	list, err := in.List(ctx, metav1.ListOptions{Limit: maxSimilar})
	if err != nil {
		return text // Without a list nothing is suggested.
	}
	var names []string
	for i := range list.Items {
		if other := list.Items[i].Name; !slices.Contains(names, other) {
			names = append(names, other)
		}
	}
	if hint := cli.DidYouMean(name, names, ""); hint != "" {
		return text + "\n" + hint
	}
	return text
}
