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

package mailboxes

import (
	"fmt"

	kcpclient "github.com/kcp-dev/apimachinery/v2/pkg/client"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/synchub-dev/synchub/provider/fastjson"
	"github.com/synchub-dev/synchub/provider/kcp"
	"github.com/synchub-dev/synchub/provider/metrics/requestmetrics"
)

var crdResource = schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"}

// mailboxClient is a client for one mailbox. It sends requests for CustomResourceDefinitions to the workspace itself, because kcp's
// virtual workspace removes the schemas from each one that it writes. The hub has the rights of the workspace's owner there.
type mailboxClient struct {
	dynamic.Interface
	workspace dynamic.Interface
}

// Resource implements [dynamic.Interface].
func (c mailboxClient) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	if resource.GroupResource() == crdResource {
		return c.workspace.Resource(resource)
	}
	return c.Interface.Resource(resource)
}

// newWorkspaceClients returns the clients for workspaces at their own URLs.
func newWorkspaceClients(access *kcp.ConfigProvider) (kcpclient.Cache[dynamic.Interface], error) {
	config := access.ConfigFor(access.Host(), requestmetrics.Mailbox)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("cannot make a client for the workspaces of %s: %w", access.Host(), err)
	}
	return kcpclient.NewCache(config, client, &kcpclient.Constructor[dynamic.Interface]{NewForConfigAndClient: fastjson.NewDynamicClient}), nil
}
