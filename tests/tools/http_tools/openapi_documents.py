"""OpenAPI documents as services publish them, cut down."""

PETSTORE = """
openapi: 3.0.3
info: {title: Swagger Petstore, version: 1.0.17}
servers:
  - url: https://{region}.petstore.example/api/v3/
    variables: {region: {default: eu, enum: [eu, us]}}
  - url: /api/v3
tags: [{name: pet}]
paths:
  /pet/{petId}:
    parameters:
      - {name: petId, in: path, required: true, description: ID of the pet,
         schema: {type: integer, format: int64}}
    get:
      tags: [pet]
      operationId: getPetById
      summary: Find pet by ID
      description: Returns a single pet.
      parameters:
        - {name: X-Trace, in: header, schema: {type: string}}
        - {name: Accept, in: header, schema: {type: string}}
      responses: {200: {description: ok}}
      security: [{api_key: []}, {petstore_auth: ['read:pets']}]
    delete: {operationId: deletePet, deprecated: true, responses: {200: {description: ok}}}
  /pet/findByStatus:
    get:
      operationId: findPetsByStatus
      parameters:
        - {name: status, in: query, explode: true,
           schema: {type: array, items: {type: string, enum: [available, sold]}}}
        - {name: ids, in: query, explode: false, schema: {type: array, items: {type: integer}}}
        - {name: 'filter[name]', in: query, schema: {type: string, nullable: true}}
        - {name: page, in: query, style: deepObject, schema: {type: object,
           properties: {size: {type: integer, minimum: 0, exclusiveMinimum: true}}}}
  /pet:
    post:
      tags: [pet]
      operationId: addPet
      requestBody: {$ref: '#/components/requestBodies/Pet'}
    put:
      operationId: updatePet
      requestBody:
        required: true
        content: {application/x-www-form-urlencoded: {schema: {type: object,
          properties: {name: {type: string}, status: {type: string}}}}}
  /pet/{petId}/uploadImage:
    post:
      operationId: uploadFile
      requestBody: {required: true, content: {multipart/form-data: {schema: {type: object,
        properties: {file: {type: string, format: binary}}}}}}
components:
  requestBodies:
    Pet: {required: true, content: {application/json: {schema: {$ref: '#/components/schemas/Pet'}}}}
  schemas:
    Category: {type: object, properties: {id: {type: integer}, name: {type: string}}}
    Pet:
      allOf:
        - {type: object, required: [name],
           properties: {id: {type: integer, readOnly: true}, name: {type: string, example: doggie}}}
        - {type: object, properties: {category: {$ref: '#/components/schemas/Category'},
           sold: {type: boolean, default: false}}}
  securitySchemes:
    api_key: {type: apiKey, name: api_key, in: header}
    petstore_auth: {type: oauth2,
      flows: {implicit: {authorizationUrl: 'https://x.example', scopes: {}}}}
"""

WEATHER = """{
  "openapi": "3.1.0",
  "info": {"title": "天气", "version": "2.5"},
  "servers": [{"url": "https://api.weather.example/data/2.5"}],
  "security": [{"app_id": []}],
  "paths": {
    "/weather": {"get": {
      "operationId": "CurrentWeatherData",
      "summary": "当前天气",
      "parameters": [
        {"$ref": "#/components/parameters/q"},
        {"name": "units", "in": "query",
         "schema": {"type": "string", "enum": ["standard", "metric"], "default": "metric"}},
        {"name": "appid", "in": "query", "required": true, "schema": {"type": "string"}}
      ]}},
    "/alerts": {"post": {"requestBody": {"content": {
      "application/json": {"schema": {"$ref": "#/components/schemas/Alert"}}}}}}
  },
  "components": {
    "parameters": {"q": {"name": "q", "in": "query", "required": true, "description": "城市",
      "schema": {"type": ["string", "null"]}}},
    "schemas": {"Alert": {"type": "object", "required": ["city"], "properties": {
      "city": {"type": "string"}, "parent": {"$ref": "#/components/schemas/Alert"},
      "level": {"const": 3}}}},
    "securitySchemes": {"app_id": {"type": "apiKey", "in": "query", "name": "appid"}}
  }
}"""
