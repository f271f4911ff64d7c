// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fill writes content to the files of a stopped server that its own work would take many minutes to make.
package fill

import (
	"context"
	"crypto/sha1"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/configbutler/slipstream/pkg/apis/configbutler/v1alpha1"
	"github.com/configbutler/slipstream/pkg/history"
	"github.com/configbutler/slipstream/pkg/store/bolt"
	"github.com/configbutler/slipstream/pkg/store/datadir"
	"github.com/configbutler/slipstream/pkg/store/encryption"
	"github.com/configbutler/slipstream/pkg/store/keyspace"
	"github.com/configbutler/slipstream/pkg/store/table"
	"github.com/configbutler/slipstream/test/devcluster"
)

const (
	// Namespaces is the number of namespaces over which Changes are spread.
	Namespaces = 20
	// Often is the share of the Changes of a namespace that one object has: every Often-th. The others are of names other objects.
	Often = 10
	names = 90
	// pushed is the number of Changes in a push.
	pushed = 1000
	// base is added to the number of a Change for its resourceVersion.
	base = 100_000
)

// History writes a number of Changes, which is a multiple of 1000, to the files in the data folder of a server, encrypted with its keys.
// They are updates of Deployments in namespaces shop-0 to shop-19.
func History(ctx context.Context, folder string, changes int) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	encrypter, err := encryption.Try(ctx, encryption.Folder{Path: folder})
	if err != nil {
		return err
	}
	var engines [2]*bolt.Engine
	for i, name := range []string{datadir.APIFile, datadir.WorkFile} {
		if engines[i], err = bolt.Open(ctx, filepath.Join(folder, name), bolt.Options{}); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, engines[i].Close()) }()
	}
	api, work := bolt.NewClient(ctx, engines[0]).KV, bolt.NewClient(ctx, engines[1]).KV
	prefix, err := keyspace.OfFiles(ctx, v1alpha1.GroupName, api, work, "")
	if err != nil {
		return err
	}
	transformers := history.Transformers(encrypter.Transformers())
	objects := table.New(api, prefix+"/"+v1alpha1.GroupName, table.WithTransformer(transformers.TransformerForResource(history.Resource)))
	h := history.New(history.Config{
		Changes:   objects.Table(history.Resource.Resource),
		Rows:      table.New(work, keyspace.Work(prefix), table.WithTransformer(encrypter.Work())).Table(history.TableName),
		Namespace: devcluster.ServerNamespace, Clock: clock.RealClock{},
	})
	for from := 0; from < changes; from += pushed {
		if err := push(ctx, h, from); err != nil {
			return err
		}
	}
	return nil
}

// push records a push of Changes.
func push(ctx context.Context, h *history.History, from int) error {
	tip := hashOf("tip", from)
	specs := make([]v1alpha1.ChangeSpec, pushed)
	began := time.Now().Add(-24 * time.Hour)
	for i := range specs {
		specs[i] = change(from+i, began.Add(time.Duration(from+i)*100*time.Millisecond))
	}
	if err := h.Prepare(ctx, tip, specs); err != nil {
		return err
	}
	if err := h.Record(ctx, tip); err != nil {
		return err
	}
	return h.Discard(ctx, tip)
}

// change returns an update of a Deployment.
func change(number int, at time.Time) v1alpha1.ChangeSpec {
	namespace, inNamespace := fmt.Sprintf("shop-%d", number%Namespaces), number/Namespaces
	name := "web"
	if inNamespace%Often != 0 {
		name = fmt.Sprintf("web-%d", inNamespace%names)
	}
	sha := hashOf("commit", number)
	return v1alpha1.ChangeSpec{
		Object: v1alpha1.ChangedObject{
			APIVersion: "apps/v1", Kind: "Deployment", Resource: "deployments", Namespace: namespace, Name: name,
			UID: "c0ffee00-1111-2222-3333-444455556666",
		},
		Operation: v1alpha1.ChangeUpdate, Time: metav1.NewMicroTime(at),
		ResourceVersions: v1alpha1.ChangedVersions{First: fmt.Sprint(base + number), Last: fmt.Sprint(base + number)},
		Author:           &v1alpha1.ChangeAuthor{Username: fmt.Sprintf("user-%d@example.com", number%50), Signal: "Audit"},
		Fields:           []string{"/spec/replicas", "/spec/template/spec/containers[name=main]/image"},
		Lines:            &v1alpha1.ChangedLines{Added: 2, Removed: 2},
		Reason:           fmt.Sprintf("release %d", number%100),
		Commits: []v1alpha1.ChangeCommit{{
			DestinationRef: v1alpha1.NamespacedObjectReference{Namespace: "platform", Name: "production"}, SHA: sha, Time: metav1.NewTime(at),
			Message: "[UPDATE] apps/v1/deployments " + namespace + "/" + name,
			Path:    "clusters/production/apps/v1/deployments/" + namespace + "/" + name + ".yaml",
			URL:     "https://git.example.com/platform/production/commit/" + sha, BlobBefore: hashOf("before", number), BlobAfter: hashOf("after", number),
		}},
	}
}

func hashOf(kind string, number int) string {
	return fmt.Sprintf("%x", sha1.Sum(fmt.Append(nil, kind, number)))
}
