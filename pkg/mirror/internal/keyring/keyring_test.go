// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package keyring_test

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"

	"filippo.io/age"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/configbutler/slipstream/pkg/mirror/internal/keyring"
	"github.com/configbutler/slipstream/pkg/mirror/sops"
)

const namespace = "system"

// cluster is an API server, which outlives the processes that use it.
type cluster struct {
	*testing.T
	*fake.Clientset
}

func newCluster(t *testing.T) cluster { return cluster{t, fake.NewClientset()} }

// process returns the keyring of a server that has just started.
func (c cluster) process() *keyring.Ring { return keyring.New(c.CoreV1(), namespace) }

func (c cluster) secret(name string) *corev1.Secret {
	c.Helper()
	secret, err := c.CoreV1().Secrets(namespace).Get(c.Context(), name, metav1.GetOptions{})
	if err != nil {
		c.Fatal(err)
	}
	return secret
}

func (c cluster) remove(name string) {
	c.Helper()
	if err := c.CoreV1().Secrets(namespace).Delete(c.Context(), name, metav1.DeleteOptions{}); err != nil {
		c.Fatal(err)
	}
}

func (c cluster) put(name string, data map[string][]byte) {
	c.Helper()
	api := c.CoreV1().Secrets(namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
	_, err := api.Create(c.Context(), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = api.Update(c.Context(), secret, metav1.UpdateOptions{})
	}
	if err != nil {
		c.Fatal(err)
	}
}

// refuse rejects a verb on a Secret until the returned function is called.
func (c cluster) refuse(verb, name string) (lift func()) {
	var once sync.Once
	lifted := make(chan struct{})
	c.PrependReactor(verb, "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		select {
		case <-lifted:
			return false, nil, nil
		default:
		}
		named := ""
		switch action := action.(type) {
		case clienttesting.GetAction:
			named = action.GetName()
		case clienttesting.CreateAction:
			object, _ := action.GetObject().(*corev1.Secret)
			named = object.Name
		}
		return named == name, nil, apierrors.NewForbidden(corev1.Resource("secrets"), named, errors.New("not for you"))
	})
	return func() { once.Do(func() { close(lifted) }) }
}

// well fails the test unless the keys are complete and without errors.
func well(t *testing.T, keys keyring.Keys) keyring.Keys {
	t.Helper()
	if keys.SeedError != nil || keys.PairError != nil || len(keys.Seed) != sops.SeedSize || keys.Recipient == "" {
		t.Fatalf("keys = %+v", keys)
	}
	return keys
}

// same fails the test if the keys have changed.
func same(t *testing.T, want, got keyring.Keys) {
	t.Helper()
	if !bytes.Equal(want.Seed, got.Seed) || want.Recipient != got.Recipient {
		t.Errorf("keys = %+v, want %+v", got, want)
	}
}

// wantMessage fails the test unless the error contains the words, and no key.
func wantMessage(t *testing.T, trouble error, words ...string) {
	t.Helper()
	if trouble == nil {
		t.Fatal("got no error")
	}
	for _, word := range words {
		if !strings.Contains(trouble.Error(), word) {
			t.Errorf("error %q lacks %q", trouble, word)
		}
	}
	if strings.Contains(trouble.Error(), "AGE-SECRET-KEY-1Q") {
		t.Errorf("error %q contains a private key", trouble)
	}
}

func TestKeysAreCreatedOnce(t *testing.T) {
	c := newCluster(t)
	keys := well(t, c.process().Read(t.Context(), true))
	pair := c.secret(keyring.PairName)
	identities, err := age.ParseIdentities(bytes.NewReader(pair.Data[keyring.PairKey]))
	if err != nil || len(identities) != 1 {
		t.Fatalf("%v, %d private keys", err, len(identities))
	}
	if identity, ok := identities[0].(*age.X25519Identity); !ok || identity.Recipient().String() != keys.Recipient {
		t.Errorf("private key does not match the recipient %s", keys.Recipient)
	}
	if !strings.Contains(string(pair.Data[keyring.PairKey]), "# public key: "+keys.Recipient+"\n") {
		t.Error("key file lacks the public key")
	}
	for _, name := range []string{keyring.PairName, keyring.SeedName} {
		if c.secret(name).Annotations["configbutler.ai/mirror"] != "false" {
			t.Errorf("%s lacks the annotation against mirroring", name)
		}
	}
	same(t, keys, well(t, c.process().Read(t.Context(), true)))
	if !bytes.Equal(pair.Data[keyring.PairKey], c.secret(keyring.PairName).Data[keyring.PairKey]) {
		t.Error("private key was written again")
	}
}

func TestPairIsCreatedWhenNeeded(t *testing.T) {
	c := newCluster(t)
	ring := c.process()
	keys := ring.Read(t.Context(), false)
	if keys.SeedError != nil || keys.PairError != nil || keys.Recipient != "" {
		t.Fatalf("keys = %+v", keys)
	}
	if list, err := c.CoreV1().Secrets(namespace).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 1 {
		t.Errorf("%v, %d Secrets", err, len(list.Items))
	}
	if later := well(t, ring.Read(t.Context(), true)); !bytes.Equal(later.Seed, keys.Seed) {
		t.Error("seed has changed")
	}
}

func TestConcurrentServersHaveTheSameKeys(t *testing.T) {
	c := newCluster(t)
	var keys [8]keyring.Keys
	var group sync.WaitGroup
	for i := range keys {
		group.Go(func() { keys[i] = c.process().Read(t.Context(), true) })
	}
	group.Wait()
	for _, each := range keys {
		if each.Recipient != "" {
			same(t, well(t, keys[0]), each)
		}
	}
	same(t, keys[0], well(t, c.process().Read(t.Context(), true)))
}

// TestPairIsDeleted checks that a deleted key pair is not replaced automatically.
func TestPairIsDeleted(t *testing.T) {
	c := newCluster(t)
	ring := c.process()
	keys := well(t, ring.Read(t.Context(), true))
	pair := c.secret(keyring.PairName)
	c.remove(keyring.PairName)
	for name, server := range map[string]*keyring.Ring{"the running server": ring, "a new server": c.process()} {
		t.Run(name, func(t *testing.T) {
			now := server.Read(t.Context(), true)
			same(t, keys, now)
			wantMessage(t, now.PairError, "system/slipstream-age", keys.Recipient, "is gone")
			if _, err := c.CoreV1().Secrets(namespace).Get(t.Context(), keyring.PairName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("Secret was created again: %v", err)
			}
		})
	}
	c.put(keyring.PairName, pair.Data)
	same(t, keys, well(t, ring.Read(t.Context(), true)))
}

func TestPairIsReplaced(t *testing.T) {
	c := newCluster(t)
	ring := c.process()
	keys := well(t, ring.Read(t.Context(), true))
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	old := c.secret(keyring.PairName).Data[keyring.PairKey]
	c.put(keyring.PairName, map[string][]byte{keyring.PairKey: append([]byte(other.String()+"\n"), old...)})
	now := well(t, ring.Read(t.Context(), true))
	if now.Recipient != other.Recipient().String() || !bytes.Equal(now.Seed, keys.Seed) {
		t.Errorf("keys = %+v", now)
	}
	c.remove(keyring.PairName)
	if after := c.process().Read(t.Context(), true); after.Recipient != now.Recipient || after.PairError == nil {
		t.Errorf("keys = %+v", after)
	}
}

func TestInvalidPair(t *testing.T) {
	for name, data := range map[string]map[string][]byte{
		"empty": {}, "another key": {"identity.agekey": []byte("AGE-SECRET-KEY-1Q")},
		"a typo":       {keyring.PairKey: []byte("AGE-SECRET-KEY-1QQQ\n")},
		"a public key": {keyring.PairKey: []byte("age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p")},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.put(keyring.PairName, data)
			keys := c.process().Read(t.Context(), true)
			wantMessage(t, keys.PairError, "system/slipstream-age", "age.agekey")
			if keys.Recipient != "" {
				t.Errorf("keys = %+v", keys)
			}
			c.remove(keyring.PairName)
			known := well(t, c.process().Read(t.Context(), true))
			c.put(keyring.PairName, data)
			keys = c.process().Read(t.Context(), true)
			wantMessage(t, keys.PairError, "age.agekey")
			same(t, known, keys)
		})
	}
}

func TestForbiddenSecrets(t *testing.T) {
	c := newCluster(t)
	lift := c.refuse("get", keyring.PairName)
	keys := c.process().Read(t.Context(), true)
	wantMessage(t, keys.PairError, "system/slipstream-age", "not for you")
	if keys.Recipient != "" || keys.SeedError != nil {
		t.Errorf("keys = %+v", keys)
	}
	lift()
	lift = c.refuse("create", keyring.PairName)
	wantMessage(t, c.process().Read(t.Context(), true).PairError, "not for you")
	lift()
	ring := c.process()
	known := well(t, ring.Read(t.Context(), true))
	for _, name := range []string{keyring.PairName, keyring.SeedName} {
		lift := c.refuse("get", name)
		now := ring.Read(t.Context(), true)
		same(t, known, now)
		wantMessage(t, errors.Join(now.SeedError, now.PairError), name, "not for you")
		lift()
	}
	defer c.refuse("get", keyring.SeedName)()
	if started := c.process().Read(t.Context(), true); started.Seed != nil || started.Recipient != "" {
		t.Errorf("keys = %+v", started)
	}
}

func TestSeedIsDeleted(t *testing.T) {
	c := newCluster(t)
	ring := c.process()
	keys := well(t, ring.Read(t.Context(), true))
	c.remove(keyring.SeedName)
	same(t, keys, well(t, ring.Read(t.Context(), true)))
	same(t, keys, well(t, c.process().Read(t.Context(), true)))
	c.remove(keyring.SeedName)
	if now := well(t, c.process().Read(t.Context(), true)); bytes.Equal(now.Seed, keys.Seed) || now.Recipient != keys.Recipient {
		t.Errorf("keys = %+v", now)
	}
}

func TestInvalidSeed(t *testing.T) {
	c := newCluster(t)
	c.put(keyring.SeedName, map[string][]byte{"seed": []byte("short")})
	keys := c.process().Read(t.Context(), true)
	wantMessage(t, keys.SeedError, "system/slipstream-age-seed", "32 bytes")
	if keys.Seed != nil || keys.Recipient != "" {
		t.Errorf("keys = %+v", keys)
	}
	c.put(keyring.SeedName, map[string][]byte{"seed": bytes.Repeat([]byte{1}, sops.SeedSize), "recipient": []byte("age1")})
	wantMessage(t, c.process().Read(t.Context(), true).SeedError, "recipient")
}
