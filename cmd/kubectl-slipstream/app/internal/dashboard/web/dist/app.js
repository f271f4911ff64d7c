document.getElementById("app").textContent = "This build of the plugin has no page.";
