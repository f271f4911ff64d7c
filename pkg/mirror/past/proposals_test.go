// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package past_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// TestMomentsOfProposals reads the folder of a destination that proposes its changes: while a pull request is open, from its branch, and
// otherwise from the base, which has what was merged.
func TestMomentsOfProposals(t *testing.T) {
	const head = "slipstream/shop/main"
	f := newFixture(t)
	api := f.api.ConfigbutlerV1alpha1()
	config, err := api.GitRepoConfigs("shop").Get(t.Context(), "repo", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config.Spec.AllowedBranches = []string{"slipstream/*/*"}
	f.destination.Spec.Delivery = &v1alpha1.Delivery{
		Type: v1alpha1.DeliveryPullRequest, PullRequest: &v1alpha1.PullRequestDelivery{BranchPrefix: "slipstream/"},
	}
	record := &v1alpha1.GitDestinationStatus{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "main"}}
	if _, err := api.GitRepoConfigs("shop").Update(t.Context(), config, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := api.GitDestinations("shop").Update(t.Context(), f.destination, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	reads := func(state, at, want string) {
		t.Helper()
		if got, err := f.colors(all, v1alpha1.ManifestOptions{At: at}); got != "shop/web="+want {
			t.Errorf("%s, at %q: %q, %v; want %s", state, at, got, err, want)
		}
	}
	becomes := func(state v1alpha1.ProposalState, branch string) {
		record.Status.Proposal = &v1alpha1.Proposal{Number: 1, State: state, Branch: branch}
	}
	red := f.commit(owned(configMaps(t, "shop/web=red")))
	blue := f.commit(configMaps(t, "shop/web=blue"))
	f.git(f.repository, "update-ref", "refs/heads/"+head, blue)
	f.git(f.repository, "update-ref", "refs/heads/main", red)
	reads("no status", "", "red")
	f.api.PrependReactor("get", "gitdestinationstatuses", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, record.DeepCopy(), nil
	})
	reads("no pull request", "", "red")
	becomes(v1alpha1.ProposalOpen, head)
	reads("open", "", "blue")
	reads("open", red, "red")
	becomes(v1alpha1.ProposalOpen, "earlier/shop/main")
	reads("open from the branch of an earlier prefix", "", "red")
	becomes(v1alpha1.ProposalDeclined, head)
	reads("declined", "", "red")

	// It is merged by a squash, and its branch is deleted.
	squashed := f.commit(configMaps(t, "shop/web=blue"))
	f.git(f.repository, "update-ref", "-d", "refs/heads/"+head)
	becomes(v1alpha1.ProposalMerged, head)
	reads("merged", "", "blue")
	reads("merged", squashed, "blue")
	reads("merged", squashed+"^", "red")
	green := f.commit(configMaps(t, "shop/web=green"))
	f.git(f.repository, "update-ref", "refs/heads/"+head, green)
	f.git(f.repository, "update-ref", "refs/heads/main", squashed)
	becomes(v1alpha1.ProposalOpen, head)
	reads("the next one is open", "", "green")
	reads("the next one is open", red, "red")
}
