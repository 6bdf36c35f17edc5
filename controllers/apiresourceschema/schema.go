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
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apisv1alpha1 "github.com/kcp-dev/sdk/apis/apis/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	synchubv1alpha1 "github.com/synchub-dev/synchub/apis/synchub/v1alpha1"
	"github.com/synchub-dev/synchub/controllers/publishedresource"
	"github.com/synchub-dev/synchub/controllers/syncmanager/crd"
	"github.com/synchub-dev/synchub/provider/discovery"
	"github.com/synchub-dev/synchub/provider/requestclass"
	"github.com/synchub-dev/synchub/provider/schemas"
	"github.com/synchub-dev/synchub/provider/schemas/builtin"
)

const (
	// startDelay is how long after its start the hub trusts the schemas of the previous leader. Syncing objects has
	// priority in that time.
	startDelay = 10 * time.Second
	// discoveryGracePeriod is how long after its start the hub may not have observed every SyncTarget and its target. In
	// that time the report of the previous leader about the same generation stays.
	discoveryGracePeriod = 2 * time.Minute
	// resyncInterval is how often the controller reads the CRD from a cluster without an event, plus up to resyncJitter of
	// it. Built-in kinds change only with an upgrade of the cluster.
	resyncInterval = 5 * time.Minute
	resyncJitter   = 0.2
	// retryInterval is when to read again from a cluster that did not answer. A target that is down causes an event when it
	// is up again.
	retryInterval = 10 * time.Second
	// sourceTimeout is the timeout of all requests for one CRD together.
	sourceTimeout = 30 * time.Second
)

// defaultKey is the key in the ConfigMap if the PublishedResource names none.
const defaultKey = "crd.yaml"

// Names of the fields in messages.
const (
	fieldHosting    = "spec.api.schemaFrom.hostingCluster"
	fieldSyncTarget = "spec.api.schemaFrom.syncTarget"
	fieldConfigMap  = "spec.api.schemaFrom.configMap"
	fieldBuiltIn    = "spec.api.schemaFrom.builtIn"
	fieldInstall    = "spec.installCRD"
)

// reconcileSchema creates the schema if the PublishedResource needs one, and returns the outcome. A problem is part of the
// outcome; the error is for a retry.
func (c *Controller) reconcileSchema(ctx context.Context, resource *synchubv1alpha1.PublishedResource) (outcome, error) {
	var found outcome
	var problem *problem
	switch err := c.ensureSchema(ctx, resource, &found); {
	case errors.As(err, &problem):
		found.problem = problem
	case err != nil:
		return outcome{}, err
	}
	if found.requeueAfter > 0 {
		found.requeueAfter = wait.Jitter(found.requeueAfter, resyncJitter)
	}
	return found, nil
}

// ensureSchema fills in the outcome. The error is a [*problem] if the operator must act or wait.
func (c *Controller) ensureSchema(ctx context.Context, resource *synchubv1alpha1.PublishedResource, found *outcome) error {
	source, err := publishedresource.APISourceOf(&resource.Spec)
	if err != nil || source != publishedresource.OwnSchema {
		c.watches.forget(resource.Name)
		c.CRDs.Delete(resource.Name)
	}
	switch {
	case err != nil:
		return invalidProblem(err)
	case source != publishedresource.OwnSchema:
		return nil
	}
	definition, notInstallable, err := c.getDefinition(ctx, resource, found)
	if err != nil {
		return err
	}
	schema, err := publishedresource.BuildSchema(ctx, &resource.Spec, definition)
	if err != nil {
		return invalidProblem(err)
	}
	if err := c.updateInstallation(resource, definition, notInstallable); err != nil {
		return err
	}
	if !c.Elected.Leads() {
		return nil
	}
	if err := c.createSchema(ctx, schema); err != nil {
		return err
	}
	found.schema = schema.Name
	if notes := schema.Annotations[schemas.NotesAnnotation]; notes != "" {
		found.notes = strings.Count(notes, "\n") + 1
	}
	return nil
}

// createSchema creates the schema unless it exists. An existing schema is never compared: its name is a hash of its
// content.
func (c *Controller) createSchema(ctx context.Context, schema *apisv1alpha1.APIResourceSchema) error {
	provider := c.Provider.GetClient()
	err := provider.Get(ctx, types.NamespacedName{Name: schema.Name}, &apisv1alpha1.APIResourceSchema{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	name := schema.Name
	err = provider.Create(ctx, schema)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err), apierrors.IsRequestEntityTooLargeError(err):
		return invalidProblem(fmt.Errorf("spec.resource: kcp refuses the schema %s: %s", name, serverMessage(err)))
	case err != nil && !apierrors.IsAlreadyExists(err):
		return fmt.Errorf("cannot create the APIResourceSchema %s: %w", name, err)
	}
	return nil
}

// errReadPending means that a read of the CRD from the target is running.
var errReadPending = errors.New("the definition is being requested from the target")

// getDefinition returns the CRD with the names that targets use, and why it cannot be installed on other targets. It sets
// requeueAfter of the outcome.
func (c *Controller) getDefinition(ctx context.Context, resource *synchubv1alpha1.PublishedResource, found *outcome) (definition *apiextensionsv1.CustomResourceDefinition, notInstallable, err error) {
	from := resource.Spec.API.SchemaFrom
	if from != nil && from.SyncTarget != nil {
		return c.fromTarget(ctx, resource, from.SyncTarget, found)
	}
	c.watches.forget(resource.Name)
	if from != nil && from.ConfigMap != nil {
		definition, err := c.fromConfigMap(ctx, from.ConfigMap)
		return definition, nil, err
	}
	if from != nil && from.BuiltIn != nil {
		definition, err := builtin.Find(resource.Spec.Resource)
		if err != nil {
			return nil, nil, &problem{ReasonSchemaMissing, fmt.Errorf("%s: %w", fieldBuiltIn, err)}
		}
		return definition, invalidProblem(fmt.Errorf("%s: the API is built into Kubernetes, so there is no definition to install", fieldInstall)), nil
	}
	definition, err = readDefinition(ctx, c.HostingDiscovery, resource)
	if err != nil {
		found.requeueAfter = retryInterval
		return nil, nil, sourceProblem(fieldHosting, "the hosting cluster", err)
	}
	found.requeueAfter = resyncInterval
	return definition, checkInstallable(ctx, c.HostingDiscovery, resource, definition), nil
}

func readDefinition(ctx context.Context, cluster *discovery.Client, resource *synchubv1alpha1.PublishedResource) (*apiextensionsv1.CustomResourceDefinition, error) {
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Background), sourceTimeout)
	defer cancel()
	return cluster.CRDFor(ctx, resource.Spec.Resource)
}

func (c *Controller) fromConfigMap(ctx context.Context, from *synchubv1alpha1.ConfigMapSchema) (*apiextensionsv1.CustomResourceDefinition, error) {
	key := cmp.Or(from.Key, defaultKey)
	var configMap corev1.ConfigMap
	name := types.NamespacedName{Namespace: c.Namespace, Name: from.Name}
	if err := c.Hosting.Get(ctx, name, &configMap); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, &problem{ReasonSchemaMissing, fmt.Errorf("%s: the ConfigMap %s does not exist", fieldConfigMap, name)}
		}
		return nil, err
	}
	manifest, ok := configMap.Data[key]
	if !ok {
		return nil, &problem{ReasonSchemaMissing, fmt.Errorf("%s: the ConfigMap %s has no key %q", fieldConfigMap, name, key)}
	}
	definition, err := publishedresource.ParseDefinition(manifest, fmt.Sprintf("%s: %s in %s", fieldConfigMap, key, name))
	if err != nil {
		return nil, invalidProblem(err)
	}
	return definition, nil
}

// fromTarget reads the CRD from the target of a SyncTarget and subscribes to changes there.
func (c *Controller) fromTarget(ctx context.Context, resource *synchubv1alpha1.PublishedResource, from *synchubv1alpha1.SyncTargetSchema, outcome *outcome) (definition *apiextensionsv1.CustomResourceDefinition, notInstallable, err error) {
	outcome.requeueAfter = resyncInterval
	name := fmt.Sprintf("the target of SyncTarget %s in %s", from.Name, from.Cluster)
	target, err := c.Targets.Find(ctx, from.Cluster, from.Name)
	if err != nil && !errors.Is(err, ErrNoSyncTarget) {
		return nil, nil, err
	}
	c.watches.watch(resource, target)
	isUp := target != nil && target.Health.IsUp()
	wasUp := c.watches.markUp(resource.Name, isUp)
	switch {
	case err != nil:
		outcome.targetUnobserved = !wasUp
		return nil, nil, &problem{ReasonSchemaMissing, fmt.Errorf("%s: the hub sees no SyncTarget %s in the workspace %s, which must bind the inventory export", fieldSyncTarget, from.Name, from.Cluster)}
	case !isUp:
		outcome.targetUnobserved = !wasUp
		return nil, nil, &problem{ReasonSourceUnreachable, fmt.Errorf("%s: %s is not connected", fieldSyncTarget, name)}
	}
	result := c.watches.resultOf(resource.Name, func(ctx context.Context) definitionResult {
		definition, err := readDefinition(ctx, target.Discovery, resource)
		if err != nil {
			return definitionResult{err: err}
		}
		return definitionResult{definition: definition, notInstallable: checkInstallable(ctx, target.Discovery, resource, definition)}
	})
	if result == nil {
		return nil, nil, errReadPending
	}
	if err := result.err; err != nil {
		problem := sourceProblem(fieldSyncTarget, name, err)
		switch {
		case problem.reason == ReasonSourceUnreachable:
			target.Health.ProbeNow()
			outcome.requeueAfter = retryInterval
		case problem.reason == ReasonNotServed && c.watches.isAnnounced(resource.Name, c.Clock.Now()):
			outcome.requeueAfter = announcedPollInterval
		}
		return nil, nil, problem
	}
	return result.definition, result.notInstallable, nil
}

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
	c.CRDs.Set(crd.Installation{
		PublishedResource: resource.Name, UID: resource.UID, Created: resource.CreationTimestamp,
		CRD: definition, Version: resource.Spec.Resource.Version,
	})
	return nil
}

// checkInstallable returns an error if spec.installCRD is set and the cluster has no CRD for the API.
func checkInstallable(ctx context.Context, cluster *discovery.Client, resource *synchubv1alpha1.PublishedResource, definition *apiextensionsv1.CustomResourceDefinition) error {
	if !resource.Spec.InstallCRD {
		return nil
	}
	ctx, cancel := context.WithTimeout(requestclass.With(ctx, requestclass.Background), sourceTimeout)
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
