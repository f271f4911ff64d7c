// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package mirror

import (
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	v1alpha1 "github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/kube/manifest"
	"github.com/configbutler/slipstream/pkg/mirror/gitrepo"
	"github.com/configbutler/slipstream/pkg/mirror/internal/keyring"
	"github.com/configbutler/slipstream/pkg/mirror/outbox"
	"github.com/configbutler/slipstream/test/testkit"
	"github.com/configbutler/slipstream/test/testkit/sopstest"
)

// withSecrets has the rule of world select Secrets, too.
func withSecrets(s *fixture) {
	s.in.rules[0].Spec.Rules[0].Resources = []string{"configmaps", "secrets"}
}

func newAge(t *testing.T) *age.X25519Identity {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return identity
}

// encryptFor changes the first destination's recipients; none means the server's own key pair.
func (s *fixture) encryptFor(identities ...*age.X25519Identity) {
	s.t.Helper()
	s.edit(func(d *v1alpha1.GitDestination) { setRecipients(d, identities...) })
}

func setRecipients(d *v1alpha1.GitDestination, identities ...*age.X25519Identity) {
	d.Spec.Secrets, d.Spec.Encryption = v1alpha1.SecretsEncrypt, &v1alpha1.Encryption{}
	for _, identity := range identities {
		d.Spec.Encryption.AgeRecipients = append(d.Spec.Encryption.AgeRecipients, identity.Recipient().String())
	}
}

// ownKey returns the private key that the server has generated.
func (s *fixture) ownKey() string {
	s.t.Helper()
	pair, err := s.secrets.CoreV1().Secrets("system").Get(s.t.Context(), keyring.PairName, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return string(pair.Data[keyring.PairKey])
}

// opened waits until a folder of main has exactly the files of the Secrets of namespace shop, and a key decrypts them. It returns their
// blobs by path.
func (s *fixture) opened(folder, key string) map[string]string {
	s.t.Helper()
	blobs := map[string]string{}
	testkit.Eventually(s.t, "the Secrets in "+folder, func() error {
		files, err := s.files("main")
		if err != nil {
			return err
		}
		clear(blobs)
		want := s.cluster.rendered(func(o outbox.Object) bool { return o.Resource == "secrets" && o.Namespace == "shop" })
		for file, blob := range files {
			below, inside := strings.CutPrefix(file, folder+"/")
			if managed, ok := parseManaged(below); !inside || !ok || managed.object.Resource != "secrets" {
				continue
			}
			if plain, ok := want[below]; !ok {
				return fmt.Errorf("%s still exists", below)
			} else if err := s.opensTo(blob, key, plain); err != nil {
				return fmt.Errorf("%s: %w", below, err)
			}
			blobs[below] = blob
		}
		if len(blobs) != len(want) {
			return fmt.Errorf("%d files for %d Secrets", len(blobs), len(want))
		}
		return nil
	})
	return blobs
}

// opensTo decrypts a blob with sops, and compares the result with the blob that would have been written without encryption.
func (s *fixture) opensTo(blob, key, plain string) error {
	file, err := s.run("cat-file", "blob", blob)
	if err != nil {
		return err
	}
	opened, err := sopstest.Open(s.t, []byte(file), key)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(opened), &object.Object); err != nil {
		return err
	}
	content, err := manifest.Render(object)
	if err == nil && gitrepo.BlobHash(content).String() != plain {
		err = fmt.Errorf("decrypted content:\n%s", content)
	}
	return err
}

// hides fails if the history in Git or the store contains one of the texts.
func (s *fixture) hides(texts ...string) {
	s.t.Helper()
	history, err := s.run("log", "-p", "--all")
	if err != nil {
		s.t.Fatal(err)
	}
	store, err := s.kv.Get(s.t.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, text := range texts {
		if strings.Contains(history, text) {
			s.t.Errorf("Git contains %q", text)
		}
		for _, row := range store.Kvs {
			if strings.Contains(string(row.Value), text) {
				s.t.Errorf("row %s contains %q", row.Key, text)
			}
		}
	}
}

// encrypted returns the current condition SecretsEncrypted of a destination.
func (s *fixture) encrypted(name string) metav1.Condition {
	s.t.Helper()
	d := s.destination(name)
	for _, condition := range destinationConditions(d, s.publisher.failure(d), "", s.router.authors.reports(time.Now()), nil) {
		if condition.Type == v1alpha1.ConditionSecretsEncrypted {
			return condition
		}
	}
	s.t.Fatalf("destination %s has no condition SecretsEncrypted", name)
	return metav1.Condition{}
}

// refreshKeys reads the server's keys, as the server does periodically, and applies a new plan.
func (s *fixture) refreshKeys() {
	s.t.Helper()
	if s.encryption.refresh(s.ctx) {
		s.plan()
	}
}

// mayNot rejects all requests for Secrets of the server's namespace.
func mayNot(secrets *fake.Clientset) {
	secrets.PrependReactor("*", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		return action.GetNamespace() == "system", nil, apierrors.NewForbidden(corev1.Resource("secrets"), "", errors.New("not for you"))
	})
}

func TestSecretsReachGitEncrypted(t *testing.T) {
	s := newFixture(t, withSecrets, perChange)
	s.idle()
	s.cluster.put(secret("a"), "cGxhaW4=")
	first := s.opened("clusters/a", s.ownKey())
	s.cluster.put(secret("a"), "b3RoZXI=")
	second := s.opened("clusters/a", s.ownKey())
	if maps.Equal(first, second) {
		t.Error("file is unchanged")
	}
	s.git.guard(down)
	s.cluster.put(secret("a"), "bGFzdA==")
	testkit.Eventually(t, "a row", func() error {
		if s.record("main").PendingChanges == 0 {
			return errors.New("none")
		}
		return nil
	})
	s.hides("cGxhaW4=", "b3RoZXI=", "bGFzdA==")
	s.git.guard(nil)
	s.opened("clusters/a", s.ownKey())
	s.cluster.remove(secret("a"))
	if left := s.opened("clusters/a", s.ownKey()); len(left) != 0 {
		t.Errorf("files = %v", left)
	}
	s.idle()
	want := "[CREATE] v1/secrets shop/a, [UPDATE] v1/secrets shop/a, [UPDATE] v1/secrets shop/a, [DELETE] v1/secrets shop/a"
	if got := strings.Join(s.commits("main"), ", "); got != want {
		t.Errorf("commits: got %s, want %s", got, want)
	}
	s.hides("cGxhaW4=", "b3RoZXI=", "bGFzdA==", "AGE-SECRET-KEY")
	if condition := s.encrypted("main"); condition.Status != metav1.ConditionTrue || condition.Reason != v1alpha1.ReasonKeyGenerated ||
		!strings.Contains(condition.Message, "system/slipstream-age") {
		t.Errorf("condition %+v", condition)
	}
}

// TestSecretsThatDidNotChangeAreNotWrittenAgain checks that the files of unchanged Secrets stay the same, also after restarts.
func TestSecretsThatDidNotChangeAreNotWrittenAgain(t *testing.T) {
	s := newFixture(t, withSecrets)
	for i := range 5 {
		s.cluster.put(secret(fmt.Sprint(i)), fmt.Sprint("value", i))
	}
	s.opened("clusters/a", s.ownKey())
	for what, happens := range map[string]func(){
		"an event without a change": func() { s.cluster.put(secret("1"), "value1") },
		"everything is compared":    func() { s.destination("main").seeds.invalidateAll(); s.plan() },
		"the server starts again":   func() { s.stop(); s.start() },
		"another server leads":      func() { s.stop(); s.start() },
		"the work store is lost":    func() { s.stop(); s.kv = newStoreKV(t, s.process); s.start() },
		"the keys are read":         s.refreshKeys,
		"the seed was deleted": func() {
			if err := s.secrets.CoreV1().Secrets("system").Delete(t.Context(), keyring.SeedName, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
			s.refreshKeys()
		},
	} {
		t.Log(what)
		s.stays("main", happens)
	}
}

func TestForeignEditOfAnEncryptedSecretIsUndone(t *testing.T) {
	s := newFixture(t, withSecrets)
	s.cluster.put(secret("a"), "cGxhaW4=")
	before := s.opened("clusters/a", s.ownKey())
	other := s.otherWriter()
	if err := other.edit("edit", other.write("clusters/a/core/v1/secrets/shop/a.yaml", "edited")); err != nil {
		t.Fatal(err)
	}
	s.cluster.put(configMap("b"), "1") // the worker detects that the branch has moved
	if after := s.opened("clusters/a", s.ownKey()); !maps.Equal(after, before) {
		t.Errorf("files = %v, want %v", after, before)
	}
}

func TestRecipientsChange(t *testing.T) {
	first, second := newAge(t), newAge(t)
	s := newFixture(t, withSecrets)
	for i := range 20 {
		s.cluster.put(secret(fmt.Sprint(i)), fmt.Sprint("value", i))
	}
	s.opened("clusters/a", s.ownKey())
	s.idle()
	commits := len(s.commits("main"))
	s.encryptFor(first, second)
	blobs := s.opened("clusters/a", first.String())
	s.idle()
	if more := len(s.commits("main")) - commits; more != 1 {
		t.Errorf("%d more commits", more)
	}
	s.opened("clusters/a", second.String())
	s.encryptFor(second, first)
	s.stays("main", func() {})
	if condition := s.encrypted("main"); condition.Status != metav1.ConditionTrue || condition.Reason != v1alpha1.ReasonRecipientsGiven {
		t.Errorf("condition %+v", condition)
	}
	s.encryptFor(second)
	testkit.Eventually(t, "other files", func() error {
		files, err := s.files("main")
		for below, blob := range blobs {
			if files["clusters/a/"+below] == blob {
				return fmt.Errorf("%s is unchanged", below)
			}
		}
		return err
	})
	for below, blob := range s.opened("clusters/a", second.String()) {
		file := s.mustRun("cat-file", "blob", blob)
		if _, err := sopstest.Open(t, []byte(file), first.String()); err == nil {
			t.Errorf("%s can be decrypted by a former recipient", below)
		}
	}
}

// TestPendingRowsUseTheCurrentEncryption checks that rows that are pending while the encryption changes are not written with the old one.
func TestPendingRowsUseTheCurrentEncryption(t *testing.T) {
	removed, kept := newAge(t), newAge(t)
	for name, before := range map[string]func(*v1alpha1.GitDestination){
		"recipient removed": func(d *v1alpha1.GitDestination) { setRecipients(d, removed) },
		"written plainly":   func(d *v1alpha1.GitDestination) { d.Spec.Secrets = v1alpha1.SecretsAsIs },
	} {
		t.Run(name, func(t *testing.T) {
			s := newFixture(t, withSecrets, func(s *fixture) { before(s.in.destinations[0]) })
			s.cluster.put(configMap("a"), "1")
			s.idle()
			s.git.guard(down)
			s.cluster.put(secret("a"), "bmV3")
			s.cluster.put(configMap("b"), "1")
			testkit.Eventually(t, "rows", func() error {
				if s.record("main").PendingChanges < 2 {
					return errors.New("too few")
				}
				return nil
			})
			s.waitReady("main", v1alpha1.ReasonRepositoryUnreachable) // so that no push is in progress
			s.encryptFor(kept)
			s.git.guard(nil)
			s.opened("clusters/a", kept.String())
			s.mirroredOne(configMap("b"))
			s.idle()
			if blobs := s.mustRun("log", "--all", "--format=%H", "--", "clusters/a/core/v1/secrets"); len(strings.Fields(blobs)) != 1 {
				t.Errorf("Secret was written more than once: %s", blobs)
			}
			s.hides("bmV3")
		})
	}
}

func TestSwitchesOfTheSecretsPolicy(t *testing.T) {
	s := newFixture(t, withSecrets)
	s.cluster.put(secret("a"), "cGxhaW4=")
	policy := func(policy v1alpha1.SecretsPolicy) {
		s.edit(func(d *v1alpha1.GitDestination) { d.Spec.Secrets = policy })
	}
	plain := func(o outbox.Object) bool { return o.Resource == "secrets" }
	before := s.opened("clusters/a", s.ownKey())
	policy(v1alpha1.SecretsOmit)
	s.mirrored() // without Secrets
	policy(v1alpha1.SecretsEncrypt)
	if after := s.opened("clusters/a", s.ownKey()); !maps.Equal(after, before) {
		t.Errorf("files = %v, want %v", after, before)
	}
	policy(v1alpha1.SecretsAsIs)
	s.holds("main", "clusters/a", plain)
	policy(v1alpha1.SecretsEncrypt)
	s.opened("clusters/a", s.ownKey())
	policy(v1alpha1.SecretsAsIs)
	s.holds("main", "clusters/a", plain)
	policy(v1alpha1.SecretsOmit)
	s.mirrored()
}

func TestKeysUnavailable(t *testing.T) {
	s := newFixture(t, withSecrets)
	s.cluster.put(secret("a"), "cGxhaW4=")
	before := s.opened("clusters/a", s.ownKey())
	key := s.ownKey()
	allowed := s.secrets
	// A server that has read the keys continues to use them, and reports the error.
	s.secrets = fake.NewClientset()
	mayNot(allowed)
	s.refreshKeys()
	if condition := s.encrypted("main"); condition.Status != metav1.ConditionTrue || condition.Reason != v1alpha1.ReasonKeyUnavailable ||
		!strings.Contains(condition.Message, "not for you") {
		t.Errorf("condition %+v", condition)
	}
	s.cluster.put(secret("b"), "bW9yZQ==")
	s.opened("clusters/a", key)
	s.idle()
	// A server that has not leaves the files of Secrets as they are.
	s.stop()
	s.secrets = allowed
	s.start()
	s.cluster.put(secret("a"), "b3RoZXI=")
	s.cluster.put(configMap("c"), "1")
	s.mirroredOne(configMap("c"))
	s.idle()
	if condition := s.encrypted("main"); condition.Status != metav1.ConditionFalse ||
		condition.Reason != v1alpha1.ReasonEncryptionUnavailable || !strings.Contains(condition.Message, "not for you") {
		t.Errorf("condition %+v", condition)
	}
	if files, err := s.files("main"); err != nil || files["clusters/a/core/v1/secrets/shop/a.yaml"] != before["core/v1/secrets/shop/a.yaml"] {
		t.Errorf("files %v, %v", files, err)
	}
	allowed.ReactionChain = allowed.ReactionChain[1:]
	s.refreshKeys()
	s.opened("clusters/a", key)
	s.hides("cGxhaW4=", "bW9yZQ==", "b3RoZXI=")
}

// TestKeysUnavailableForPlainFiles checks that plain files of Secrets are removed if they must be encrypted and cannot be.
func TestKeysUnavailableForPlainFiles(t *testing.T) {
	for _, again := range []bool{false, true} {
		t.Run(fmt.Sprintf("again %t", again), func(t *testing.T) {
			s := newFixture(t, withSecrets, func(s *fixture) {
				s.in.destinations[0].Spec.Secrets = v1alpha1.SecretsAsIs
				mayNot(s.secrets)
			})
			s.cluster.put(secret("a"), "cGxhaW4=")
			s.cluster.put(configMap("a"), "1")
			s.holds("main", "clusters/a", func(o outbox.Object) bool { return o.Namespace == "shop" })
			s.idle()
			if again { // another process has only the condition of the previous one
				s.edit(func(d *v1alpha1.GitDestination) { d.Status.Conditions = []metav1.Condition{s.encrypted("main")} })
				s.stop()
				s.in.destinations[0].Spec.Secrets = v1alpha1.SecretsEncrypt
				s.start()
			} else {
				s.encryptFor()
			}
			s.mirrored() // without Secrets
		})
	}
}

func TestOwnKeyPairIsDeleted(t *testing.T) {
	s := newFixture(t, withSecrets)
	s.cluster.put(secret("a"), "cGxhaW4=")
	s.opened("clusters/a", s.ownKey())
	key := s.ownKey()
	if err := s.secrets.CoreV1().Secrets("system").Delete(t.Context(), keyring.PairName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, server := range []func(){s.refreshKeys, func() { s.stop(); s.start() }} {
		s.stays("main", server)
		if condition := s.encrypted("main"); condition.Status != metav1.ConditionTrue || condition.Reason != v1alpha1.ReasonKeyUnavailable ||
			!strings.Contains(condition.Message, "is gone") {
			t.Errorf("condition %+v", condition)
		}
	}
	s.cluster.put(secret("b"), "bW9yZQ==")
	s.opened("clusters/a", key)
	another := newAge(t)
	pair := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: keyring.PairName}, Data: map[string][]byte{
		keyring.PairKey: []byte(another.String()),
	}}
	if _, err := s.secrets.CoreV1().Secrets("system").Create(t.Context(), pair, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	s.refreshKeys()
	s.opened("clusters/a", another.String())
}

func TestDestinationsWithRecipientsOfTheirOwn(t *testing.T) {
	mine := newAge(t)
	s := newFixture(t, withSecrets, onBranch("other", "main", "b"), func(s *fixture) { setRecipients(s.in.destinations[1], mine) })
	s.cluster.put(secret("a"), "cGxhaW4=")
	own, other := s.opened("clusters/a", s.ownKey()), s.opened("b", mine.String())
	if slices.Equal(slices.Collect(maps.Values(own)), slices.Collect(maps.Values(other))) {
		t.Error("both destinations have the same file")
	}
	s.cluster.put(secret("a"), "b3RoZXI=")
	s.opened("clusters/a", s.ownKey())
	s.opened("b", mine.String())
	s.hides("cGxhaW4=", "b3RoZXI=")
}

func TestPathsOfEncryptedSecrets(t *testing.T) {
	s := newFixture(t, withSecrets)
	s.cluster.put(secret("a"), "cGxhaW4=")
	for below := range s.opened("clusters/a", s.ownKey()) {
		if below != path.Join("core/v1/secrets/shop", "a.yaml") {
			t.Errorf("unexpected path %s", below)
		}
	}
}
