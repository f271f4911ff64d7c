// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package attribution

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/configbutler/slipstream/test/testkit/mirrortest"
)

const (
	crowd   = 20
	objects = 20
	// drained is the timeout for pushing all changes, with a margin for a busy machine.
	drained = 5 * time.Minute
)

// authors has many users change the same few objects, and compares each commit with the response to its change.
type authors struct {
	*mirrortest.Mirror
	users []kubernetes.Interface
	mutex sync.Mutex
	// writes has the user of each resourceVersion.
	writes map[string]string
}

func newAuthors(b *testing.B, s *mirrortest.AdminCluster) *authors {
	b.Helper()
	a := &authors{Mirror: s.NewMirror(b, "crowd", "granularity: PerChange"), writes: map[string]string{}}
	s.Run(b, "create", "role", "crowd", "-n", "crowd", "--verb=*", "--resource=configmaps")
	s.Run(b, "create", "rolebinding", "crowd", "-n", "crowd", "--role=crowd", "--group=crowd")
	for i := range crowd {
		user, err := s.User(username(i), "crowd")
		if err != nil {
			b.Fatal(err)
		}
		a.users = append(a.users, mirrortest.Client(b, user))
	}
	mirrortest.Eventually(b, "the crowd has its rights", func(ctx context.Context) error {
		_, err := a.users[0].CoreV1().ConfigMaps("crowd").List(ctx, metav1.ListOptions{})
		return err
	})
	for i := range objects {
		if _, err := a.users[i%crowd].CoreV1().ConfigMaps("crowd").Create(b.Context(), configMap(i, "first"),
			metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	a.Watch(b, "all", "configmaps")
	a.Settled(b)
	return a
}

func username(i int) string { return fmt.Sprintf("person%02d", i) }

func configMap(number int, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c%02d", number), Namespace: "crowd"}, Data: map[string]string{"value": value},
	}
}

// run has all users change all objects alternately, so that successive changes of an object have different users. The number of concurrent
// changes is the number of users.
func (a *authors) run(b *testing.B) {
	b.Helper()
	made := 0
	rate := paced(b, changeRate, crowd, func(ctx context.Context, number int, _ time.Time) error {
		by := (number + number/objects) % crowd
		object, err := a.users[by].CoreV1().ConfigMaps("crowd").Update(ctx, configMap(number%objects, fmt.Sprint(number)), metav1.UpdateOptions{})
		if err != nil {
			return err
		}
		a.mutex.Lock()
		defer a.mutex.Unlock()
		made++
		a.writes[object.ResourceVersion] = username(by)
		return nil
	})
	right, wrong := a.judge(a.commits(b, made))
	b.ReportMetric(rate, "changes/s")
	b.ReportMetric(100*float64(right)/float64(made), "right-%")
	b.ReportMetric(float64(wrong), "wrong")
}

// judge counts the commits with the right author, and those with a wrong one.
func (a *authors) judge(commits []mirrortest.Commit) (right, wrong int) {
	for _, c := range commits {
		by, ok := a.writes[c.ResourceVersion]
		switch {
		case c.Signal != "audit" && c.Signal != "admission":
		case ok && c.Author == by:
			right++
		default:
			wrong++
		}
	}
	return right, wrong
}

// commits waits for the commits of all changes. The creation of the objects is in the commit of the seed.
func (a *authors) commits(b *testing.B, made int) (commits []mirrortest.Commit) {
	b.Helper()
	err := wait.PollUntilContextTimeout(b.Context(), time.Second, drained, true, func(ctx context.Context) (bool, error) {
		var err error
		commits, err = a.History(ctx, "v1/configmaps")
		return len(commits) >= made, err
	})
	if err != nil {
		b.Fatalf("%d of %d changes are in Git: %v", len(commits), made, err)
	}
	return commits
}
