// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/configbutler/slipstream/cmd/kubectl-slipstream/app/internal/cli"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	client "github.com/configbutler/slipstream/pkg/generated/clientset/versioned/typed/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/printable"
)

// writeLines writes lines that can contain names from objects.
func writeLines(out io.Writer, prefix string, lines []string) {
	for _, line := range lines {
		_, _ = fmt.Fprintln(out, prefix+printable.Line(line)) // Nothing depends on it.
	}
}

// needs returns what must exist before the manifests work, with the commands that create it.
func (f *followed) needs() (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if f.credentials {
		add("In that cluster, create a Secret with credentials that may read the repository:")
		create := "kubectl create secret generic " + f.gitSecret() + " -n " + f.namespace
		ssh := strings.HasPrefix(f.withScheme(), "ssh:")
		switch {
		case f.by == argoCD && ssh:
			add("  %s --from-literal=type=git %s --from-file=sshPrivateKey=FILE", create, cli.Quoted("--from-literal=url="+f.url))
		case f.by == argoCD:
			url := cli.Quoted("--from-literal=url=" + f.url)
			add("  %s --from-literal=type=git %s --from-literal=username=USER --from-literal=password=TOKEN", create, url)
		case ssh:
			add("  %s --from-file=identity=FILE --from-file=known_hosts=FILE", create)
		default:
			add("  %s --from-literal=username=USER --from-literal=password=TOKEN", create)
		}
		if f.by == argoCD {
			add("  kubectl label secret %s -n %s argocd.argoproj.io/secret-type=repository", f.gitSecret(), f.namespace)
		}
	}
	switch {
	case !f.encrypted:
	case f.by == argoCD:
		add("Secrets are left out: they are encrypted, and Argo CD decrypts nothing. Have Flux apply them, or a plugin of Argo CD's repository")
		add("server that calls sops, such as KSOPS; then remove core/v1/secrets/* from exclude.")
	default:
		f.needsKey(add)
	}
	return lines
}

// needsKey adds how Flux gets the private key for encrypted Secrets.
func (f *followed) needsKey(add func(format string, args ...any)) {
	if len(f.recipients) > 0 {
		add("In that cluster, create a Secret with the private key (AGE-SECRET-KEY-1...) of a recipient in spec.encryption.ageRecipients:")
	} else {
		add("The private key decrypts the Secrets of all mirrors without recipients of their own. Read it in this cluster:")
		add("  (umask 077; kubectl get secret slipstream-age -n slipstream-system -o jsonpath='{.data.age\\.agekey}' | base64 -d > FILE)")
		add("In that cluster, create a Secret with it:")
	}
	add("  kubectl create secret generic %s -n %s --from-file=age.agekey=FILE", f.ageSecret(), f.namespace)
}

// warnings returns what to consider before the manifests are applied.
func (f *followed) warnings(ctx context.Context, api client.ConfigbutlerV1alpha1Interface) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	restriction := "spec.serviceAccountName of the Kustomization"
	if f.by == argoCD {
		restriction = "an AppProject"
	}
	add("Who can push to the branch %s of %s can then create any object in that cluster: restrict it with %s", f.branch, f.url, restriction)
	if url := f.withScheme(); url != f.url && f.by == flux {
		add("Flux takes no %s, so check that %s is the same repository: its path begins at the root of the server", f.url, url)
	}
	types, err := f.selectedTypes(ctx, api)
	if err != nil {
		add("What the rules select was not examined: %v", err)
		return lines
	}
	for _, each := range slices.Sorted(maps.Keys(types)) {
		if reason, known := doubtful[each]; known {
			add("%s are applied as well: %s", each, reason)
		}
	}
	if len(types) > 0 && !types["namespaces"] {
		add("No rule selects namespaces: create them in that cluster, or add namespaces to a ClusterWatchRule")
	}
	return lines
}

// doubtful are types whose objects can be applied to another cluster, but rarely should.
var doubtful = map[string]string{
	"apiservices.apiregistration.k8s.io": "one whose Service does not run there makes discovery slow, and blocks the deletion of namespaces",
	"jobs.batch":                         "they run again in that cluster",
	"mutatingwebhookconfigurations.admissionregistration.k8s.io": "one whose Service does not run there can refuse every change",
	"persistentvolumeclaims":                                     "they get new, empty volumes in that cluster",
	"persistentvolumes":                                          "they name the disks of this cluster",
	"pods":                                                       "those without a controller run in both clusters",
	"validatingwebhookconfigurations.admissionregistration.k8s.io": "one whose Service does not run there can refuse every change",
}

// selectedTypes returns the types, such as jobs.batch, that the rules of the destination select. A caller who may not list the WatchRules of
// all namespaces sees those of the destination's namespace.
func (f *followed) selectedTypes(ctx context.Context, api client.ConfigbutlerV1alpha1Interface) (map[string]bool, error) {
	types := map[string]bool{}
	add := func(matched []v1alpha1.ResourceType) {
		for _, each := range matched {
			types[schema.GroupResource{Group: each.Group, Resource: each.Resource}.String()] = true
		}
	}
	rules, err := api.WatchRules(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		rules, err = api.WatchRules(f.destination.Namespace).List(ctx, metav1.ListOptions{})
	}
	if err != nil {
		return nil, err
	}
	for _, rule := range rules.Items {
		ref := rule.Spec.DestinationRef
		if ref.Name == f.destination.Name && cmp.Or(ref.Namespace, rule.Namespace) == f.destination.Namespace {
			add(rule.Status.MatchedResourceTypes)
		}
	}
	if !f.clusterRules {
		return types, nil
	}
	clusterRules, err := api.ClusterWatchRules().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, rule := range clusterRules.Items {
		if ref := rule.Spec.DestinationRef; ref.Name == f.destination.Name && ref.Namespace == f.destination.Namespace {
			add(rule.Status.MatchedResourceTypes)
		}
	}
	return types, nil
}
