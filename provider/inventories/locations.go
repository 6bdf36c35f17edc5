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

package inventories

import (
	"context"
	"net/http"
	"sync"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"

	edgev2alpha1 "github.com/synchub-dev/synchub/apis/edge/v2alpha1"
)

// newLocationInformer returns an informer of the Locations of all inventory workspaces at an endpoint. It works apart
// from the cache of the other kinds: an informer of that cache that cannot sync would keep all inventories from their
// controllers. If the export has no Locations, the informer logs that once, and fills when the export has them.
func (c *endpointCache) newLocationInformer(config *rest.Config, httpClient *http.Client, scheme *runtime.Scheme, log logr.Logger) (toolscache.SharedIndexInformer, error) {
	client, err := newEdgeClient(config, httpClient, scheme)
	if err != nil {
		return nil, err
	}
	informer := c.newInformer(toolscache.NewListWatchFromClient(client, locationsResource, "", fields.Everything()), &edgev2alpha1.Location{}, 0,
		toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	// These calls fail only on a started informer.
	_ = informer.SetTransform(stripObject)
	_ = informer.SetWatchErrorHandlerWithContext(locationErrorHandler(log))
	return informer, nil
}

// locationErrorHandler returns a handler that logs once that the export has no Locations. kcp's informers have no
// reflector for client-go's default handler.
func locationErrorHandler(log logr.Logger) toolscache.WatchErrorHandlerWithContext {
	var once sync.Once
	return func(_ context.Context, _ *toolscache.Reflector, err error) {
		if !apierrors.IsNotFound(err) {
			log.V(1).Info("the watch of Locations ended and will be taken up again", "error", err.Error())
			return
		}
		once.Do(func() {
			log.Info("the inventory export has no Locations, so nothing can be placed: run `synchub init` of this version; SyncTargets work without", "error", err.Error())
		})
	}
}
