// Copyright The Slipstream Authors.
// SPDX-License-Identifier: Apache-2.0

package setup

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/configbutler/slipstream/pkg/apis/configbutler"
	"github.com/configbutler/slipstream/pkg/apis/configbutler/install"
	"github.com/configbutler/slipstream/pkg/registry/validation"
)

// validate sets defaults in a copy of an object and validates it, as the server does. Only the server knows whether it admits
// repositories at http and file URLs, so they are admitted here.
func validate(object *unstructured.Unstructured) (field.ErrorList, error) {
	scheme := runtime.NewScheme()
	install.Install(scheme)
	typed, err := scheme.New(object.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	const unknownFields = true
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, typed, unknownFields); err != nil {
		return nil, fmt.Errorf("decode %s: %w", object.GetKind(), err)
	}
	scheme.Default(typed)
	internal, err := scheme.ConvertToVersion(typed, configbutler.SchemeGroupVersion)
	if err != nil {
		return nil, fmt.Errorf("convert %s: %w", object.GetKind(), err)
	}
	switch of := internal.(type) {
	case *configbutler.GitRepoConfig:
		return validation.ValidateGitRepoConfig(of, validation.Options{AllowInsecureURLs: true}), nil
	case *configbutler.GitDestination:
		return validation.ValidateGitDestination(of), nil
	case *configbutler.WatchRule:
		return validation.ValidateWatchRule(of), nil
	case *configbutler.AppCatalog:
		return validation.ValidateAppCatalog(of), nil
	case *configbutler.Environment:
		return validation.ValidateEnvironment(of), nil
	case *configbutler.SyncPipeline:
		return validation.ValidateSyncPipeline(of), nil
	}
	return nil, fmt.Errorf("there is no validation of %T", internal)
}
