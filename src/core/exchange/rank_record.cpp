// Part of SuCL, the SYCL unified communication library. Licensed under the Apache License 2.0;
// see LICENSE. SPDX-License-Identifier: Apache-2.0
#include "core/exchange/rank_record.hpp"

#include <nlohmann/json.hpp>

namespace sucl::core {

using json = nlohmann::json;

std::string rank_record::text() const {
  json j{{"host", self.host},
         {"process", self.process},
         {"platform", self.platform},
         {"implementation", self.implementation},
         {"sycl_backend", self.sycl_backend},
         {"device", self.device},
         {"device_memory_on_host", self.device_memory_on_host},
         {"machine", machine},
         {"declared_node", declared_node},
         {"declared_island", declared_island},
         {"version", version},
         {"representation", representation},
         {"processors", processors},
         {"settings", settings},
         {"job", job},
         {"world_rank", world_rank}};
  if (wrong)
    j["wrong"] = {{"code", static_cast<int>(wrong->code)},
                  {"message", wrong->message},
                  {"hint", wrong->hint}};
  // Names of hosts and devices may be in any encoding.
  return j.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<rank_record> rank_record::parse(const std::string& text) {
  try {
    const json j = json::parse(text);
    rank_record r;
    j.at("host").get_to(r.self.host);
    j.at("process").get_to(r.self.process);
    j.at("platform").get_to(r.self.platform);
    j.at("implementation").get_to(r.self.implementation);
    j.at("sycl_backend").get_to(r.self.sycl_backend);
    j.at("device").get_to(r.self.device);
    j.at("device_memory_on_host").get_to(r.self.device_memory_on_host);
    j.at("machine").get_to(r.machine);
    j.at("declared_node").get_to(r.declared_node);
    j.at("declared_island").get_to(r.declared_island);
    j.at("version").get_to(r.version);
    j.at("representation").get_to(r.representation);
    j.at("processors").get_to(r.processors);
    j.at("settings").get_to(r.settings);
    j.at("job").get_to(r.job);
    j.at("world_rank").get_to(r.world_rank);
    if (const auto wrong = j.find("wrong"); wrong != j.end()) {
      r.wrong.emplace();
      r.wrong->code = static_cast<errc>(wrong->at("code").get<int>());
      wrong->at("message").get_to(r.wrong->message);
      wrong->at("hint").get_to(r.wrong->hint);
    }
    return r;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

}  // namespace sucl::core
