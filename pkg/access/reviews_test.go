// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package access_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/configbutler/slipstream/pkg/access"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
)

// cluster serves SubjectAccessReviews and records them.
type cluster struct {
	mu sync.Mutex
	// denied are verbs and resources that no user is allowed.
	denied []string
	// failure is the evaluation error of denied reviews. While unavailable is set, requests fail.
	failure     string
	unavailable bool
	asked       []authorizationv1.SubjectAccessReviewSpec
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var review authorizationv1.SubjectAccessReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.asked = append(c.asked, review.Spec)
	if c.unavailable {
		http.Error(w, "starting", http.StatusInternalServerError)
		return
	}
	asked := review.Spec.ResourceAttributes
	review.Status.Allowed = !slices.Contains(c.denied, asked.Verb+" "+asked.Resource)
	if !review.Status.Allowed {
		review.Status.EvaluationError = c.failure
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(review)
}

// set changes the results of reviews, and returns the number of requests until then.
func (c *cluster) set(change func(*cluster)) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
	return len(c.asked)
}

func (c *cluster) questions() int { return c.set(func(*cluster) {}) }

// fixture is a fake API of access reviews with a client.
type fixture struct {
	*cluster
	clock   *clocktesting.FakePassiveClock
	reviews *access.Reviews
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	s := fixture{cluster: &cluster{}, clock: clocktesting.NewFakePassiveClock(time.Unix(1_800_000_000, 0))}
	server := httptest.NewServer(s.cluster)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	reviews, err := access.NewReviewsForConfig(config, s.clock)
	if err != nil {
		t.Fatal(err)
	}
	s.reviews = reviews
	return s
}

// automated is an environment whose automatic syncs jane has turned on.
func automated() *v1alpha1.Environment {
	return &v1alpha1.Environment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "alice"},
		Spec: v1alpha1.EnvironmentSpec{
			CatalogRef: v1alpha1.ObjectReference{Name: "shop"}, TargetNamespace: "alice", AutoSync: true,
		},
		Status: v1alpha1.EnvironmentStatus{AutomatedBy: &v1alpha1.AutomatedBy{Username: "jane", UID: "7", Groups: []string{"shop-team"}}},
	}
}

func shop() *v1alpha1.AppCatalog {
	return &v1alpha1.AppCatalog{
		ObjectMeta: metav1.ObjectMeta{Namespace: "teams", Name: "shop"},
		Spec: v1alpha1.AppCatalogSpec{
			SourceNamespace: "production", Workloads: []v1alpha1.WorkloadReference{{Kind: v1alpha1.WorkloadDeployment, Name: "api"}},
		},
	}
}

func (s fixture) check(t *testing.T, e *v1alpha1.Environment) string {
	t.Helper()
	lost, err := s.reviews.Check(t.Context(), access.Automating(e), access.OfEnvironment(e, shop()))
	if err != nil {
		t.Fatal(err)
	}
	return lost
}

func TestLossIsSaid(t *testing.T) {
	const takeOver = ": a user who may must turn spec.autoSync off and on again"
	tests := []struct {
		name   string
		denied []string
		change func(*v1alpha1.Environment)
		want   string
	}{
		{name: "nothing"},
		{
			name: "Secrets of the source", denied: []string{"get secrets"},
			want: `user "jane" may not get secrets in the namespace production` + takeOver,
		},
		{
			name: "writing", denied: []string{"create deployments", "patch configmaps", "patch services", "get secrets"},
			want: `user "jane" may not get secrets in the namespace production, nor patch configmaps and services in the namespace alice, ` +
				`nor create deployments.apps in the namespace alice` + takeOver,
		},
		{
			name: "much", denied: []string{"get appcatalogs", "create secrets", "patch services", "delete configmaps", "create deployments"},
			want: `user "jane" may not get appcatalogs.configbutler.ai "shop" in the namespace teams, ` +
				`nor delete configmaps in the namespace alice, nor create secrets in the namespace alice` + takeOver,
		},
		{
			name: "of an account", denied: []string{"create deployments"},
			change: func(e *v1alpha1.Environment) { e.Spec.ServiceAccountName = "syncer" },
			want: `ServiceAccount teams/syncer may not create deployments.apps in the namespace alice: ` +
				`grant it that, or let spec.serviceAccountName name one that may`,
		},
		{
			name:   "without a user",
			change: func(e *v1alpha1.Environment) { e.Status.AutomatedBy = nil },
			want:   "no user is known to have turned automatic syncs on: turn spec.autoSync off and on again",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, e := newFixture(t), automated()
			if tt.change != nil {
				tt.change(e)
			}
			s.set(func(c *cluster) { c.denied = tt.denied })
			if diff := cmp.Diff(tt.want, s.check(t, e)); diff != "" {
				t.Errorf("lost (-want +got):\n%s", diff)
			}
		})
	}
}

func TestReviewedUser(t *testing.T) {
	account := automated()
	account.Spec.ServiceAccountName = "syncer"
	tests := []struct {
		name string
		e    *v1alpha1.Environment
		want authorizationv1.SubjectAccessReviewSpec
	}{
		{"the user who turned it on", automated(), authorizationv1.SubjectAccessReviewSpec{
			User: "jane", UID: "7", Groups: []string{"shop-team"},
		}},
		{"the account", account, authorizationv1.SubjectAccessReviewSpec{
			User:   "system:serviceaccount:teams:syncer",
			Groups: []string{"system:serviceaccounts", "system:serviceaccounts:teams", "system:authenticated"},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t)
			s.check(t, tt.e)
			tt.want.ResourceAttributes = &authorizationv1.ResourceAttributes{
				Verb: "get", Namespace: "teams", Group: "configbutler.ai", Version: "*", Resource: "appcatalogs", Name: "shop",
			}
			if diff := cmp.Diff(tt.want, s.asked[0]); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnswersAreCached(t *testing.T) {
	s, e := newFixture(t), automated()
	s.check(t, e)
	first := s.questions()
	if first == 0 {
		t.Fatal("no review was requested")
	}
	s.set(func(c *cluster) { c.denied = []string{"patch configmaps"} })
	s.clock.SetTime(s.clock.Now().Add(access.AllowedTTL - time.Second))
	if lost := s.check(t, e); lost != "" || s.questions() != first {
		t.Errorf("lost %q, %d questions: want the answers of before, which were %d", lost, s.questions(), first)
	}

	s.clock.SetTime(s.clock.Now().Add(2 * time.Second))
	if lost := s.check(t, e); !strings.Contains(lost, "patch configmaps") || s.questions() != 2*first {
		t.Errorf("lost %q, %d questions: want the loss, and all %d asked again", lost, s.questions(), first)
	}
	s.set(func(c *cluster) { c.denied = nil })
	if lost := s.check(t, e); lost == "" || s.questions() != 2*first {
		t.Errorf("lost %q, %d questions: want the loss to be kept", lost, s.questions())
	}

	s.clock.SetTime(s.clock.Now().Add(access.DeniedTTL + time.Second))
	if lost := s.check(t, e); lost != "" || s.questions() != 2*first+1 {
		t.Errorf("lost %q, %d questions: want what was lost to be asked about again, and no more", lost, s.questions())
	}
}

// TestCheckNowIgnoresCachedDecisions checks that it finds a loss that is hidden by the cache, and that Check finds the loss then.
func TestCheckNowIgnoresCachedDecisions(t *testing.T) {
	s, e := newFixture(t), automated()
	s.check(t, e)
	s.set(func(c *cluster) { c.denied = []string{"patch configmaps"} })
	if lost := s.check(t, e); lost != "" {
		t.Fatalf("lost %q, want the cached decision", lost)
	}
	lost, err := s.reviews.CheckNow(t.Context(), access.Automating(e), access.OfEnvironment(e, nil))
	if err != nil || !strings.Contains(lost, "patch configmaps") {
		t.Errorf("%v: lost %q", err, lost)
	}
	if lost := s.check(t, e); !strings.Contains(lost, "patch configmaps") {
		t.Errorf("lost %q after a new decision was cached", lost)
	}
}

// TestDecisionsAreCachedForEachUser checks that cached decisions do not apply to other users.
func TestDecisionsAreCachedForEachUser(t *testing.T) {
	s, others := newFixture(t), make([]*v1alpha1.Environment, 5)
	for i := range others {
		others[i] = automated()
	}
	others[1].Status.AutomatedBy.Username = "john"
	others[2].Status.AutomatedBy.UID = "8"
	others[3].Status.AutomatedBy.Groups = []string{"shop", "team"}
	others[4].Spec.TargetNamespace = "bob"
	for i, e := range others {
		before := s.set(func(c *cluster) { c.denied = nil })
		if i > 0 {
			s.set(func(c *cluster) { c.denied = []string{"patch configmaps"} })
		}
		if lost := s.check(t, e); (lost != "") != (i > 0) || s.questions() == before {
			t.Errorf("environment %d: lost %q after %d questions", i, lost, s.questions()-before)
		}
	}
	before := s.questions()
	if lost := s.check(t, automated()); lost != "" || s.questions() != before {
		t.Errorf("lost %q after %d questions, want what is known", lost, s.questions()-before)
	}
}

func TestFailedReviewsAreNoLoss(t *testing.T) {
	tests := []struct {
		name   string
		breaks func(*cluster)
		want   string
	}{
		{"it fails", func(c *cluster) { c.unavailable = true }, "starting"},
		{"its authorizer fails", func(c *cluster) { c.denied, c.failure = []string{"get secrets"}, "webhook: no answer" }, "webhook: no answer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, e := newFixture(t), automated()
			s.set(tt.breaks)
			lost, err := s.reviews.Check(t.Context(), access.Automating(e), access.OfEnvironment(e, shop()))
			if lost != "" || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("lost %q, error %v, want one with %q", lost, err, tt.want)
			}
			s.set(func(c *cluster) { c.denied, c.failure, c.unavailable = nil, "", false })
			if lost := s.check(t, e); lost != "" {
				t.Errorf("lost %q when it is well again", lost)
			}
		})
	}
}

func TestACheckEndsWithItsContext(t *testing.T) {
	s, e := newFixture(t), automated()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if lost, err := s.reviews.Check(ctx, access.Automating(e), access.OfEnvironment(e, shop())); lost != "" || err == nil {
		t.Errorf("lost %q, error %v, want the error of the context", lost, err)
	}
}
