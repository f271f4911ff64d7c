// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/configbutler/slipstream/pkg/access/accesspolicy"
	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/controller/conditions"
	"github.com/configbutler/slipstream/pkg/controller/ignorerules"
	"github.com/configbutler/slipstream/pkg/kube/ignore"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/kube/watch"
	"github.com/configbutler/slipstream/pkg/mirror/internal/keyring"
)

// inputs is everything that a plan depends on.
type inputs struct {
	repositories []*v1alpha1.GitRepoConfig
	destinations []*v1alpha1.GitDestination
	rules        []*v1alpha1.WatchRule
	clusterRules []*v1alpha1.ClusterWatchRule
	// types are those of the cluster, policy which of them rules select.
	types  *watch.Snapshot
	policy watch.Policy
	// uncertain reports whether discovery failed for a group.
	uncertain  func(group string) bool
	namespaces namespaceLookup
	// allow checks the permissions of the user who wrote a rule, and returns the types from which it may select, nil for all. A nil function
	// disables the check.
	allow func(rule metav1.Object, status *v1alpha1.WatchRuleStatus) (*watch.Snapshot, conditions.Reason)
	// keys are the server's encryption keys, as far as destinations need them.
	keys keyring.Keys
	// claims are the current claims of destinations by UID. Those that it lacks are in the statuses of the objects.
	claims map[types.UID]*v1alpha1.FolderClaim
	// now is when a destination that names another folder than before begins to name it.
	now time.Time
}

// plan is the desired state of the mirror, computed from the objects of users.
type plan struct {
	destinations map[types.NamespacedName]*destinationPlan
	rules        map[types.NamespacedName]*rulePlan
	clusterRules map[string]*rulePlan
}

// branchKey identifies a branch through one repository configuration. Two configurations with the same URL are separate, so
// that neither uses the other's credentials.
type branchKey struct {
	repository types.NamespacedName
	url        string
	branch     string
	// base is the branch to which the branch is proposed; empty if it is pushed to directly.
	base string
	// generation is that of the configuration: a change of it starts a new worker.
	generation int64
}

// destinationPlan is the desired state of one GitDestination.
type destinationPlan struct {
	object *v1alpha1.GitDestination
	// repository is the object's GitRepoConfig; nil if it does not exist, or does not admit the object.
	repository *v1alpha1.GitRepoConfig
	branch     branchKey
	// claim is the claim to its folder.
	claim v1alpha1.FolderClaim
	// problem is why the destination is not in force; zero if it is.
	problem   conditions.Reason
	secrets   secretsPlan
	selection selection
	// ignore removes fields that are not mirrored.
	ignore ignore.Rules
	// referred is set if a rule in force refers to the destination.
	referred bool
	// held is set if a rule that is not in force refers to the destination: what only that rule selects is neither mirrored
	// nor removed.
	held bool
	// uncertain reports whether discovery failed for a group: then none of its files are removed.
	uncertain func(group string) bool
}

// rulePlan is one WatchRule or ClusterWatchRule.
type rulePlan struct {
	// uid and generation are those of the rule, destination is the GitDestination that it refers to.
	uid         types.UID
	generation  int64
	destination types.NamespacedName

	// problem is why the rule is not in force; zero if it is.
	problem conditions.Reason
	// access is AccessNotGranted if the destination or its repository does not admit the rule, another reason if that is
	// unknown.
	access    conditions.Reason
	types     []watch.Type
	unmatched []watch.Unmatched
}

// newPlan computes the plan. It is a pure function of its inputs.
func newPlan(in inputs) *plan {
	p := &plan{
		destinations: map[types.NamespacedName]*destinationPlan{},
		rules:        map[types.NamespacedName]*rulePlan{},
		clusterRules: map[string]*rulePlan{},
	}
	repositories := map[types.NamespacedName]*v1alpha1.GitRepoConfig{}
	for _, r := range in.repositories {
		repositories[nameOf(r)] = r
	}
	for _, d := range in.destinations {
		p.destinations[nameOf(d)] = planDestination(d, repositories, in)
	}
	p.settleClaims(in)
	p.refuseOverlaps()
	for _, r := range in.rules {
		p.planRule(r, in)
	}
	for _, r := range in.clusterRules {
		p.planClusterRule(r, in)
	}
	return p
}

func nameOf(object metav1.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}
}

func planDestination(
	d *v1alpha1.GitDestination, repositories map[types.NamespacedName]*v1alpha1.GitRepoConfig, in inputs,
) *destinationPlan {
	out := &destinationPlan{object: d, uncertain: in.uncertain, secrets: planSecrets(d, in.keys)}
	name := d.Spec.RepoRef.NamespacedName(d.Namespace)
	repository, ok := repositories[name]
	switch {
	case !ok:
		out.problem = conditions.Reason{Code: v1alpha1.ReasonRepositoryNotFound, Message: fmt.Sprintf("there is no GitRepoConfig %s", name)}
		return out
	case !admits(repository.Spec.AccessPolicy, repository.Namespace, d.Namespace, in.namespaces):
		out.problem = notAdmitted(fmt.Sprintf("GitRepoConfig %s", name), d.Namespace, "GitDestinations")
		return out
	}
	out.repository = repository
	branch, base := d.Branches()
	if !branchAllowed(repository.Spec.AllowedBranches, branch) {
		out.problem = conditions.Reason{Code: v1alpha1.ReasonBranchNotAllowed, Message: fmt.Sprintf(
			"GitRepoConfig %s does not allow branch %q; its spec.allowedBranches has %s", name, branch,
			quoted(repository.Spec.AllowedBranches))}
		return out
	}
	// A folder that the remote rejects would block all other destinations of the branch.
	if _, err := manifest.CleanBaseFolder(d.Spec.BaseFolder); err != nil {
		out.problem = conditions.Reason{Code: v1alpha1.ReasonFolderInvalid, Message: "spec.baseFolder: " + err.Error()}
		return out
	}
	var err error
	if out.ignore, err = ignorerules.Compile(d.Spec.Ignore); err != nil {
		out.problem = conditions.Reason{Code: v1alpha1.ReasonIgnoreInvalid, Message: "spec.ignore: " + err.Error()}
		return out
	}
	out.branch = branchKey{
		repository: name, url: repository.Spec.RepoURL, branch: branch, base: base, generation: repository.Generation,
	}
	return out
}

func quoted(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// branchAllowed reports whether one of the names and globs matches the branch.
func branchAllowed(allowed []string, branch string) bool {
	return slices.ContainsFunc(allowed, func(pattern string) bool {
		matched, err := path.Match(pattern, branch)
		return pattern == branch || err == nil && matched
	})
}

// admits reports whether the policy of an object in namespace own allows references from objects in namespace from, or from
// cluster-scoped objects if from is empty.
func admits(policy *v1alpha1.AccessPolicy, own, from string, namespaces namespaceLookup) bool {
	if from == "" {
		return policy != nil && policy.AllowClusterRules
	}
	return accesspolicy.Admits(policy, own, from, func(name string) (labels.Set, bool) {
		namespace, known := namespaces(name)
		return namespace.Labels, known
	})
}

// refusal returns AccessNotGranted if the destination or its repository does not admit a reference. from is the namespace of
// the referring object, empty if it is cluster-scoped; what is its kind for the message. An unknown repository admits all.
func (p *destinationPlan) refusal(from, what string, namespaces namespaceLookup) conditions.Reason {
	if !admits(p.object.Spec.AccessPolicy, p.object.Namespace, from, namespaces) {
		return notAdmitted(fmt.Sprintf("GitDestination %s", nameOf(p.object)), from, what)
	}
	if r := p.repository; r != nil && !admits(r.Spec.AccessPolicy, r.Namespace, from, namespaces) {
		return notAdmitted(fmt.Sprintf("GitRepoConfig %s, the repository of GitDestination %s,", nameOf(r), nameOf(p.object)), from, what)
	}
	return conditions.Reason{}
}

func notAdmitted(who, from, what string) conditions.Reason {
	if from == "" {
		return conditions.Reason{Code: v1alpha1.ReasonAccessNotGranted, Message: fmt.Sprintf(
			"%s does not admit %s: its spec.accessPolicy.allowClusterRules must be true", who, what)}
	}
	return conditions.Reason{Code: v1alpha1.ReasonAccessNotGranted, Message: fmt.Sprintf(
		"%s does not admit %s of namespace %s: its spec.accessPolicy.namespacedRules must allow that namespace", who, what, from)}
}

// writes reports whether a destination in force has the branch, through any configuration of its repository.
func (p *plan) writes(key branchKey) bool {
	for _, d := range p.destinations {
		if d.problem.IsZero() && d.branch.branch == key.branch && canonicalURL(d.branch.url) == canonicalURL(key.url) {
			return true
		}
	}
	return false
}

// canonicalURL returns the same text for the usual spellings of a repository's URL. It does not recognize aliases of a host.
func canonicalURL(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Host == "" {
		return strings.TrimSuffix(strings.TrimRight(address, "/"), ".git") // user@host:path
	}
	host := strings.ToLower(parsed.Hostname())
	if port := parsed.Port(); port != "" && port != defaultPorts[parsed.Scheme] {
		host = net.JoinHostPort(host, port)
	}
	return parsed.Scheme + "://" + host + strings.TrimSuffix(path.Clean("/"+parsed.Path), ".git")
}

var defaultPorts = map[string]string{"https": "443", "http": "80", "ssh": "22"}

// destinationFor returns the destination of a rule, why the rule is not in force, and why it is not admitted. from is the namespace of a
// WatchRule, empty for a ClusterWatchRule.
func (p *plan) destinationFor(
	name types.NamespacedName, from string, namespaces namespaceLookup,
) (d *destinationPlan, problem, access conditions.Reason) {
	d, ok := p.destinations[name]
	if !ok {
		problem = conditions.Reason{Code: v1alpha1.ReasonDestinationNotFound, Message: fmt.Sprintf("there is no GitDestination %s", name)}
		return nil, problem, problem
	}
	kind := "WatchRules"
	if from == "" {
		kind = "ClusterWatchRules"
	}
	if access = d.refusal(from, kind, namespaces); !access.IsZero() || d.problem.IsZero() {
		return d, access, access
	}
	problem = conditions.Reason{
		Code: v1alpha1.ReasonDestinationNotReady, Message: fmt.Sprintf("GitDestination %s: %s", name, d.problem.Message),
	}
	if d.repository == nil {
		access = problem
	}
	return d, problem, access
}

func (p *plan) planRule(r *v1alpha1.WatchRule, in inputs) {
	out := &rulePlan{uid: r.UID, generation: r.Generation, destination: r.Spec.DestinationRef.NamespacedName(r.Namespace)}
	p.rules[nameOf(r)] = out
	d, problem, access := p.destinationFor(out.destination, r.Namespace, in.namespaces)
	from, problem := in.allowed(r, &r.Status, problem)
	out.problem, out.access = problem, access
	objects, err := selectorOrAll(r.Spec.ObjectSelector)
	if err != nil {
		out.problem = conditions.Reason{Code: v1alpha1.ReasonNoMatchingTypes, Message: "spec.objectSelector: " + err.Error()}
	}
	// The items differ only in their types and operations: those with the same operations share a selector.
	byOperations := map[operations]map[schema.GroupVersionResource]watch.Type{}
	for _, item := range r.Spec.Rules {
		ops := operationsOf(item.Operations)
		if byOperations[ops] == nil {
			byOperations[ops] = map[schema.GroupVersionResource]watch.Type{}
		}
		out.resolve(from, in.policy, item, v1alpha1.ScopeNamespaced, byOperations[ops])
	}
	for _, ops := range slices.Sorted(maps.Keys(byOperations)) {
		out.attach(d, selector{types: byOperations[ops], namespace: r.Namespace, objects: objects, operations: ops})
	}
	out.settle(d)
}

func (p *plan) planClusterRule(r *v1alpha1.ClusterWatchRule, in inputs) {
	ref := r.Spec.DestinationRef
	out := &rulePlan{uid: r.UID, generation: r.Generation, destination: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}
	p.clusterRules[r.Name] = out
	d, problem, access := p.destinationFor(out.destination, "", in.namespaces)
	from, problem := in.allowed(r, &r.Status, problem)
	out.problem, out.access = problem, access
	selectors := make([]selector, len(r.Spec.Rules))
	for i, item := range r.Spec.Rules {
		selectors[i] = selector{
			types: map[schema.GroupVersionResource]watch.Type{}, objects: labels.Everything(), operations: operationsOf(item.Operations),
		}
		out.resolve(from, in.policy, item.ResourceRule, item.Scope, selectors[i].types)
		if item.NamespaceSelector == nil {
			continue
		}
		namespaces, err := metav1.LabelSelectorAsSelector(item.NamespaceSelector)
		if err != nil {
			out.problem = conditions.Reason{
				Code: v1alpha1.ReasonNoMatchingTypes, Message: fmt.Sprintf("spec.rules[%d].namespaceSelector: %v", i, err),
			}
		}
		selectors[i].namespaces = namespaces
	}
	for _, s := range selectors { // A rule is in force as a whole, or not at all.
		out.attach(d, s)
	}
	out.settle(d)
}

// allowed returns the types from which a rule selects, and why it is not in force. destination is why its destination does not accept it.
func (in *inputs) allowed(
	rule metav1.Object, status *v1alpha1.WatchRuleStatus, destination conditions.Reason,
) (*watch.Snapshot, conditions.Reason) {
	if !destination.IsZero() || in.allow == nil {
		return in.types, destination
	}
	from, problem := in.allow(rule, status)
	if from == nil {
		from = in.types
	}
	return from, problem
}

// resolve adds the types of an item to those of a selector and to the rule's.
func (r *rulePlan) resolve(
	from *watch.Snapshot, policy watch.Policy, item v1alpha1.ResourceRule, scope v1alpha1.ResourceScope,
	types map[schema.GroupVersionResource]watch.Type,
) {
	matched, unmatched := from.Resolve(watch.Selection{
		APIGroups: item.APIGroups, APIVersions: item.APIVersions, Resources: item.Resources, Scope: watch.Scope(scope),
	}, policy)
	r.types = append(r.types, matched...)
	r.unmatched = append(r.unmatched, unmatched...)
	for _, t := range matched {
		types[t.Resource] = t
	}
}

// attach adds a selector to the destination if the rule is in force.
func (r *rulePlan) attach(d *destinationPlan, s selector) {
	if r.problem.IsZero() {
		d.selection = append(d.selection, s)
	}
}

// settle sorts the rule's types and marks its destination as referred or held.
func (r *rulePlan) settle(d *destinationPlan) {
	slices.SortFunc(r.types, func(a, b watch.Type) int { return compareResources(a.Resource, b.Resource) })
	compact := slices.CompactFunc(r.types, func(a, b watch.Type) bool { return a.Resource == b.Resource })
	r.types = slices.Clone(compact) // The array may be many times longer.
	if d == nil {
		return
	}
	if r.problem.IsZero() {
		d.referred = true
	} else {
		d.held = true
	}
}
