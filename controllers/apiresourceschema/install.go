/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package apiresourceschema

import (
	"context"
	"fmt"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

// updateInstallation stores the CRD to be installed on targets, if spec.installCRD is set, and removes the stored CRD
// otherwise. Only a CRD that a cluster really has can be installed: one that is built from an OpenAPI document fits only
// mailboxes. notInstallable is why the CRD is not a real one.
func (c *Controller) updateInstallation(resource *synchubv1alpha1.PublishedResource, definition *apiextensionsv1.CustomResourceDefinition, notInstallable error) error {
	if !resource.Spec.InstallCRD {
		c.CRDs.Delete(resource.Name)
		return nil
	}
	if !strings.Contains(definition.Spec.Group, ".") {
		return invalidProblem(fmt.Errorf("%s: clusters have no CustomResourceDefinitions in the group %q, whose kinds are built in", fieldInstall, definition.Spec.Group))
	}
	if notInstallable != nil {
		return notInstallable
	}
	c.CRDs.Set(publishedresource.CRDInstallation{
		PublishedResource: resource.Name, UID: resource.UID, Created: resource.CreationTimestamp,
		CRD: definition, Version: resource.Spec.Resource.Version,
	})
	return nil
}

// checkInstallable returns an error if spec.installCRD is set and the cluster has no CRD of its own for the API.
func checkInstallable(ctx context.Context, cluster *discovery.Client, resource *synchubv1alpha1.PublishedResource, definition *apiextensionsv1.CustomResourceDefinition) error {
	if !resource.Spec.InstallCRD {
		return nil
	}
	ctx, cancel := context.WithTimeout(requestmetrics.WithClass(ctx, requestmetrics.Background), sourceTimeout)
	defer cancel()
	name := definition.Spec.Names.Plural + "." + definition.Spec.Group
	_, err := cluster.GetCRD(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
		return invalidProblem(fmt.Errorf("%s: the cluster that serves %s has no CustomResourceDefinition of it", fieldInstall, name))
	case err != nil:
		return sourceProblem(fieldInstall, "the cluster that serves "+name, err)
	default:
		return nil
	}
}
