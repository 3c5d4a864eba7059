/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The config file: a YAML mapping whose keys are the long options of all commands. An unknown key
 * is an error, with its line and the closest known key, because an ignored typo would go unnoticed
 * until production.
 */
#include "face/cli/cli.h"

#include "base/nearest.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { KEYS_MAX = 96 };

struct config_reader {
    const char *path;
    struct settings *settings;
    struct text *why;
    const struct option *known[KEYS_MAX];
    size_t known_count;
};

static void config_add_known(struct config_reader *reader, const struct option *const *options)
{
    for (; options != NULL && *options != NULL; options++) {
        bool news = !(*options)->flag_only && reader->known_count < KEYS_MAX;
        for (size_t i = 0; i < reader->known_count && news; i++)
            news = strcmp(reader->known[i]->name, (*options)->name) != 0;
        if (news)
            reader->known[reader->known_count++] = *options;
    }
}

static bool config_refuse(const struct config_reader *reader, size_t line, const char *what,
                          const char *more)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%zu", line);
    text_clear(reader->why);
    text_add(reader->why, reader->path);
    text_add(reader->why, ":");
    text_add(reader->why, number);
    text_add(reader->why, ": ");
    text_add(reader->why, what);
    text_add(reader->why, more);
    return false;
}

static bool config_refuse_key(const struct config_reader *reader, size_t line, const char *key)
{
    const char *names[KEYS_MAX];
    char message[256];
    for (size_t i = 0; i < reader->known_count; i++)
        names[i] = reader->known[i]->name;
    const char *near = nearest_match(key, names, reader->known_count);
    (void)snprintf(message, sizeof message, "'%.64s'; %s%s%s", key,
                   near != NULL ? "the closest is '" : "keys are the long options of the commands",
                   near != NULL ? near : "", near != NULL ? "'" : "");
    return config_refuse(reader, line, "unknown key ", message);
}

static bool config_set_value(struct config_reader *reader, const struct option *option,
                             const yaml_node_t *node)
{
    size_t line = node->start_mark.line + 1;
    char message[512], wrong[640];
    struct text why;
    if (node->type != YAML_SCALAR_NODE)
        return config_refuse(reader, line, option->name, ": expected a single value");
    const char *value = (const char *)node->data.scalar.value;
    if (strlen(value) != node->data.scalar.length)
        return config_refuse(reader, line, option->name, ": the value contains a NUL byte");
    if (!option_takes_value(option) && strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
        return config_refuse(reader, line, option->name, ": must be true or false");
    text_init(&why, message, sizeof message);
    if (option_set(option, value, reader->settings, &why))
        return true;
    (void)snprintf(wrong, sizeof wrong, "%s: %s", option->name, message);
    return config_refuse(reader, line, wrong, "");
}

static bool apply_pair(struct config_reader *reader, yaml_document_t *document,
                       const yaml_node_pair_t *pair)
{
    const yaml_node_t *key = yaml_document_get_node(document, pair->key);
    const yaml_node_t *value = yaml_document_get_node(document, pair->value);
    const struct option *option = NULL;
    size_t line = key->start_mark.line + 1;
    if (key->type != YAML_SCALAR_NODE)
        return config_refuse(reader, line, "a key must be a long option, such as ttl", "");
    const char *name = (const char *)key->data.scalar.value;
    for (size_t i = 0; i < reader->known_count && option == NULL; i++)
        option = strcmp(reader->known[i]->name, name) == 0 ? reader->known[i] : NULL;
    if (option == NULL)
        return config_refuse_key(reader, line, name);
    if (option->kind != VALUE_PAIR || value->type != YAML_SEQUENCE_NODE)
        return config_set_value(reader, option, value);
    for (const yaml_node_item_t *item = value->data.sequence.items.start;
         item < value->data.sequence.items.top; item++) {
        if (!config_set_value(reader, option, yaml_document_get_node(document, *item)))
            return false;
    }
    return true;
}

static bool apply_document(struct config_reader *reader, yaml_document_t *document)
{
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (root == NULL) /* empty, or comments only */
        return true;
    if (root->type != YAML_MAPPING_NODE)
        return config_refuse(reader, root->start_mark.line + 1, "expected lines of KEY: VALUE", "");
    for (const yaml_node_pair_t *pair = root->data.mapping.pairs.start;
         pair < root->data.mapping.pairs.top; pair++) {
        if (!apply_pair(reader, document, pair))
            return false;
    }
    return true;
}

static bool config_read_file(struct config_reader *reader, FILE *file)
{
    static yaml_document_t document; /* settings refer to it until the program exits */
    yaml_parser_t parser;
    if (yaml_parser_initialize(&parser) == 0)
        return config_refuse(reader, 0, "out of memory", "");
    yaml_parser_set_input_file(&parser, file);
    bool good = yaml_parser_load(&parser, &document) != 0;
    if (good)
        good = apply_document(reader, &document);
    else
        (void)config_refuse(reader, parser.problem_mark.line + 1, "invalid YAML: ",
                            parser.problem != NULL ? parser.problem : "read error");
    yaml_parser_delete(&parser);
    return good;
}

bool config_apply(const char *path, struct settings *settings, struct text *why)
{
    struct config_reader reader = {.path = path, .settings = settings, .why = why};
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        text_clear(why);
        text_add(why, path);
        text_add(why, ": ");
        text_add(why, strerror(errno));
        return false;
    }
    config_add_known(&reader, global_options);
    for (size_t i = 0; command_at(i) != NULL; i++)
        config_add_known(&reader, command_at(i)->options);
    bool good = config_read_file(&reader, file);
    (void)fclose(file);
    return good;
}
