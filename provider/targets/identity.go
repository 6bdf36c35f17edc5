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

package targets

import (
	"context"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/synchub-dev/synchub/provider/requests"
)

// identityTimeout bounds the questions who a target is.
const identityTimeout = 5 * time.Second

// clusterIdentity is what is known of which cluster a connection leads to.
type clusterIdentity struct {
	lock  sync.Mutex
	id    string
	known bool
}

// origins are where a cluster's identity stands, the surest first.
var origins = []struct {
	resource schema.GroupVersionResource
	name     string
}{
	{namespaces, metav1.NamespaceSystem},
	{schema.GroupVersionResource{Group: "core.kcp.io", Version: "v1alpha1", Resource: "logicalclusters"}, "cluster"},
}

// ClusterID returns what identifies the cluster whatever its address, empty if the cluster does not tell. It asks once; known
// is false if it must be asked again.
func (c *Connection) ClusterID(ctx context.Context) (id string, known bool) {
	if id, known := c.KnownClusterID(); known {
		return id, known
	}
	ctx, cancel := context.WithTimeout(requests.As(ctx, requests.Background), identityTimeout)
	defer cancel()
	for _, origin := range origins {
		object, err := c.metadata.Resource(origin.resource).Get(ctx, origin.name, metav1.GetOptions{})
		if err == nil {
			id = string(object.GetUID())
			break
		}
		if !apierrors.IsNotFound(err) && !apierrors.IsForbidden(err) {
			return "", false
		}
	}
	c.identity.lock.Lock()
	defer c.identity.lock.Unlock()
	c.identity.id, c.identity.known = id, true
	return id, true
}

// KnownClusterID is [Connection.ClusterID] without asking.
func (c *Connection) KnownClusterID() (id string, known bool) {
	c.identity.lock.Lock()
	defer c.identity.lock.Unlock()
	return c.identity.id, c.identity.known
}
