// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package sops

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/configbutler/slipstream/pkg/kube/manifest"
)

// EncryptVerbatim encrypts all fields of an object, as a version would that leaves out none, and returns it as it is, too.
func (e *Encrypter) EncryptVerbatim(object *unstructured.Unstructured) (encrypted, plain []byte, err error) {
	if plain, err = manifest.Verbatim(object, asIs{}); err != nil {
		return nil, nil, err
	}
	r := ruleOf(object.Object)
	f, err := newFile(e.fileKey(r, plain), r, e.recipients)
	if err != nil {
		return nil, nil, err
	}
	encrypted, err = manifest.Verbatim(object, f)
	return encrypted, plain, err
}

type asIs struct{}

func (asIs) Value(_ []string, value any) (any, error) { return value, nil }

func (asIs) Fields() (map[string]any, error) { return nil, nil }
